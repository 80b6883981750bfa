#ifndef ANNULUS_PARAMS_TILE_ORDER_PARAMS_H_
#define ANNULUS_PARAMS_TILE_ORDER_PARAMS_H_

// The column tiles of a tile row that are not listed one by one: with structured patterns a row is
// one or two runs of neighbouring tiles, and a kernel counts through them. Plain C++ without
// includes, for NVRTC and the host compiler: the planner counts tiles with the functions that the
// kernel uses.

#ifdef __CUDACC_RTC__
#define ANNULUS_ON_BOTH __device__ __forceinline__
#else
#define ANNULUS_ON_BOTH constexpr
#endif

namespace annulus::kernels {

// How a kernel finds the column tiles of its rows; a constant of the kernel.
enum class TileOrder : int {
  kList = 0,  // entries in memory, one load for each tile
  kRuns = 1,  // RowRuns of each row, loaded once, or RowGroups, from which the record is computed
  kBand = 2,  // RowBand of all rows: computed from the row's number
  kAny = 3,   // any of these, by the pointers in TileListParams (tile/general.cuh)
};

// A row of one or two runs, in memory. A run is partial tiles, then full tiles, then partial tiles,
// and any of these may be missing. Two runs may touch. Tile i of the row, i < count, is column i +
// shift[i >= split]. It is full if full_begin[n] <= i < full_begin[n] + full_count[n] for some n.
struct alignas(16) RowRuns {
  int count;  // tiles of the row
  int split;  // tiles of the first run
  int shift[2];
  int full_begin[2];
  int full_count[2];

  ANNULUS_ON_BOTH int column(int i) const { return i + (i < split ? shift[0] : shift[1]); }
  // Makes tile n the first one. The caller has to update `count`.
  ANNULUS_ON_BOTH void skip(int n) {
    split -= n;
    shift[0] += n;
    shift[1] += n;
    full_begin[0] -= n;
    full_begin[1] -= n;
  }
  ANNULUS_ON_BOTH bool partial(int i) const {
    return static_cast<unsigned>(i - full_begin[0]) >= static_cast<unsigned>(full_count[0]) &&
           static_cast<unsigned>(i - full_begin[1]) >= static_cast<unsigned>(full_count[1]);
  }
  // This record after adding `step` to it `times` times, number by number.
  ANNULUS_ON_BOTH RowRuns stepped(const RowRuns& step, int times) const {
    RowRuns row = *this;
    row.count += times * step.count;
    row.split += times * step.split;
    for (int n = 0; n < 2; ++n) {
      row.shift[n] += times * step.shift[n];
      row.full_begin[n] += times * step.full_begin[n];
      row.full_count[n] += times * step.full_count[n];
    }
    return row;
  }
  ANNULUS_ON_BOTH bool operator==(const RowRuns& other) const {
    return count == other.count && split == other.split && shift[0] == other.shift[0] &&
           shift[1] == other.shift[1] && full_begin[0] == other.full_begin[0] &&
           full_begin[1] == other.full_begin[1] && full_count[0] == other.full_count[0] &&
           full_count[1] == other.full_count[1];
  }
};

// A group of any number of neighbouring tile rows whose records can be computed from the numbers of
// the rows: from each row to the row a period later, the record changes by a step. Row i of the
// group, with j = i mod period, is record j stepped i / period times. The groups of a list come in
// launch order, and together have all its rows.
struct alignas(16) RowGroup {
  int row;         // the first row
  int rows;        // 0: empty, in lists that have fewer groups than other lists
  int order;       // place of the group's rows in launch order
  int descending;  // 1: the rows come from the last to the first
  int period;
  int first;  // index of `period` records, which are followed by `period` steps
  int padding[2];

  ANNULUS_ON_BOTH bool operator==(const RowGroup& other) const {
    return row == other.row && rows == other.rows && order == other.order &&
           descending == other.descending && period == other.period && first == other.first;
  }
  ANNULUS_ON_BOTH bool has_row(int i) const {
    return static_cast<unsigned>(i - row) < static_cast<unsigned>(rows);
  }
  ANNULUS_ON_BOTH bool has_place(int i) const {
    return static_cast<unsigned>(i - order) < static_cast<unsigned>(rows);
  }
  // Requires: has_place(place).
  ANNULUS_ON_BOTH int row_at(int place) const {
    return descending ? row + rows - 1 - (place - order) : row + (place - order);
  }
  // Requires: has_row(i). `runs` are the list's records and steps.
  ANNULUS_ON_BOTH RowRuns runs_of(const RowRuns* runs, int i) const {
    const int times = (i - row) / period;
    const RowRuns* const record = runs + first + (i - row - times * period);
    return record->stepped(record[period], times);
  }
};

// A row of one run.
struct RowRun {
  int count;
  int first;  // column of tile 0
  int full_begin;
  int full_count;

  ANNULUS_ON_BOTH int column(int i) const { return first + i; }
  ANNULUS_ON_BOTH void skip(int n) {
    first += n;
    full_begin -= n;
  }
  ANNULUS_ON_BOTH bool partial(int i) const {
    return static_cast<unsigned>(i - full_begin) >= static_cast<unsigned>(full_count);
  }
};

// A row of K as a function of row i of Q: i + offset, clamped to [least, most]. It never descends.
struct Ramp {
  int offset;
  int least;
  int most;

  ANNULUS_ON_BOTH int at(int i) const {
    const int key = i + offset;
    return key < least ? least : key > most ? most : key;
  }
};

// A pattern in which every query sees one run of keys whose ends are ramps: row i of Q sees the
// rows [first(i), end(i)) of K. There is at least one such row exactly if seen_begin <= i <
// seen_end.
struct RowBand {
  Ramp first;
  Ramp end;
  int seen_begin;
  int seen_end;
  int descending;  // the longest tile rows are the last ones
  int padding;
};

// Tile row `row` of a band, for tiles of M x N. Requires: row < ceil(Sq / M).
ANNULUS_ON_BOTH RowRun band_row(const RowBand& band, int tile_rows, int tile_columns, int seq_q,
                                int seq_k, int row) {
  const auto columns = static_cast<unsigned>(tile_columns);
  const int begin = row * tile_rows;
  const int last = (begin + tile_rows < seq_q ? begin + tile_rows : seq_q) - 1;
  const int seen_begin = begin > band.seen_begin ? begin : band.seen_begin;
  const int seen_last = last < band.seen_end - 1 ? last : band.seen_end - 1;
  if (seen_begin > seen_last) return {0, 0, 0, 0};
  // The tiles that some query of the row sees. Ramps never descend, so the first query that sees
  // something sees the first key, and the last such query sees the last key.
  const unsigned first = static_cast<unsigned>(band.first.at(seen_begin)) / columns;
  const unsigned end = static_cast<unsigned>(band.end.at(seen_last) - 1) / columns + 1;
  // The tiles that all queries of the row see: from the last query's first key to the first query's
  // last key. A tile that is cut by the end of K is full if all of its keys that exist are seen.
  unsigned full_begin = 0;
  unsigned full_end = 0;
  if (seen_begin == begin && seen_last == last) {
    const int keys_end = band.end.at(begin);
    full_begin = (static_cast<unsigned>(band.first.at(last)) + columns - 1) / columns;
    full_end = (static_cast<unsigned>(keys_end) + (keys_end == seq_k ? columns - 1 : 0)) / columns;
  }
  return {static_cast<int>(end - first), static_cast<int>(first),
          static_cast<int>(full_begin - first),
          full_end > full_begin ? static_cast<int>(full_end - full_begin) : 0};
}

}  // namespace annulus::kernels

#undef ANNULUS_ON_BOTH

#endif  // ANNULUS_PARAMS_TILE_ORDER_PARAMS_H_
