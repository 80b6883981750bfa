#include "attention/tiles/tile_list.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "attention/tiles/block_mask.h"
#include "attention/tiles/planes.h"
#include "attention/tiles/row_groups.h"
#include "attention/tiles/tile_band.h"
#include "attention/tiles/tile_runs.h"
#include "base/fail.h"
#include "base/huge_pages.h"
#include "base/math.h"
#include "base/random.h"
#include "base/work.h"
#include "pattern/classify.h"

namespace annulus::attention {
namespace {

// The most tiles of a list, and the most mask words: 2 GB for each.
constexpr std::int64_t kMaxEntries = std::int64_t{1} << 29;

// Appends the launch order of the list that was appended last, the longest row first, and updates
// longest_row and empty_rows with its rows.
void append_order(std::int64_t which, TileList* list) {
  base::charge(list->row_tiles * std::bit_width(static_cast<std::uint64_t>(list->row_tiles)));
  std::vector<std::int32_t> order(static_cast<std::size_t>(list->row_tiles));
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](std::int32_t row) { return list->row_length(which, row); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return length(a) > length(b); });
  list->row_order.insert(list->row_order.end(), order.begin(), order.end());
  for (std::int32_t row = 0; row < list->row_tiles; ++row) {
    list->longest_row = std::max(list->longest_row, length(row));
    list->empty_rows += length(row) == 0;
  }
}

// The source of lists: the planes of a problem, for the rows of a placement.
struct Seen {
  const Planes& planes;
  const pattern::Placement& placement;
  std::int64_t heads;  // H

  template <typename F>
  bool each(const TileList& list, const F& f) const {
    return planes.each(placement, list.tile_rows, list.tile_columns, f);
  }
};

[[noreturn]] void refuse_tiles(const TileList& list) {
  base::fail(ErrorCode::kUnsupported,
             "{} queries and {} keys need a list of more than {} tiles of {} x {}; use a "
             "sparser pattern, fewer per-head layouts, fewer batches that differ or a shorter "
             "sequence",
             list.seq_q, list.seq_k, kMaxEntries, list.tile_rows, list.tile_columns);
}

// Throws if a sample of the rows of one head shows that the list would be much too long, or would
// take much more work than is left. Rows are drawn at random, because rows at equal distances may
// all be alike. The longest quarter of the sample counts as 0, so that a few long rows do not make
// the list seem too long. With fewer rows in the sample, the excess has to be larger. Returns an
// estimate of the list's tiles.
double check_sample(const TileList& list, pattern::Classifier& classifier, std::int64_t head) {
  constexpr std::size_t kMaxRows = 64, kMinRows = 4;
  constexpr double kSurely = 4;  // by which factor a list must seem too long if all rows are drawn
  std::vector<std::int64_t> tiles, steps;
  const auto of_all_rows = [&](std::vector<std::int64_t>& each) {
    std::ranges::sort(each);
    const auto sum =
        std::accumulate(each.begin(), each.end() - std::ssize(each) / 4, std::int64_t{0});
    return static_cast<double>(sum) / static_cast<double>(each.size()) *
           static_cast<double>(list.row_tiles);
  };
  base::Random random(1);
  for (std::size_t rows = 1; rows <= kMaxRows; ++rows) {
    const std::int64_t before = base::steps_done();
    const auto row =
        static_cast<std::int64_t>(random.uniform() * static_cast<double>(list.row_tiles - 1));
    tiles.push_back(0);
    for (const pattern::BlockRun& run : classifier.row(head, row)) {
      tiles.back() += run.end - run.begin;
    }
    steps.push_back(base::steps_done() - before);
    if (rows < kMinRows || !std::has_single_bit(rows)) continue;
    const double surely = kSurely * kMaxRows / static_cast<double>(rows);
    const double all_tiles = of_all_rows(tiles) / surely;
    if (all_tiles > static_cast<double>(kMaxEntries)) refuse_tiles(list);
    base::expect(static_cast<std::int64_t>(std::min(of_all_rows(steps) / surely + all_tiles, 1e18)),
                 "the list of tiles");
  }
  return of_all_rows(tiles);
}

// Whether the grids of all planes hold more tiles than a list may have.
bool is_large(const TileList& list, const Seen& seen) {
  return static_cast<double>(seen.planes.count()) * static_cast<double>(list.row_tiles) *
             static_cast<double>(list.column_tiles) >
         static_cast<double>(kMaxEntries);
}

// Throws for a list that is too long, or that takes too much work, before it is made: a dense
// pattern over a billion keys has 10^14 tiles. Small grids are not checked. In a large grid, a
// sample of rows shows quickly if the list would be much too long. It also shows if the list is so
// short that its tiles may be counted while it is made; if it is not, the tiles are counted first.
// Returns the number of tiles of the lists of all planes, counted or estimated, or 0 for a small
// grid.
std::int64_t check_tiles(const TileList& list, const Seen& seen) {
  if (!is_large(list, seen)) return 0;
  std::int64_t tiles = 0;
  bool first = true;
  seen.each(list, [&](pattern::Classifier& classifier, std::int64_t head) {
    if (std::exchange(first, false)) {
      const double seems =
          check_sample(list, classifier, head) * static_cast<double>(seen.planes.count());
      if (4 * seems < static_cast<double>(kMaxEntries)) {
        tiles = static_cast<std::int64_t>(seems);
        return false;
      }
    }
    for (std::int64_t row = 0; row < list.row_tiles; ++row) {
      for (const pattern::BlockRun& run : classifier.row(head, row)) tiles += run.end - run.begin;
      if (tiles > kMaxEntries) refuse_tiles(list);
    }
    return true;
  });
  return tiles;
}

void check_words(const TileList& list) {
  if (std::ssize(list.mask_words) <= kMaxEntries) return;
  base::fail(ErrorCode::kUnsupported,
             "the masks of blocks() need more than {} words at {} x {} pairs per bit; use blocks "
             "whose sizes and offsets are multiples of larger powers of two",
             kMaxEntries, 1 << list.granule_row_shift, 1 << list.granule_column_shift);
}

// Sets head_list: each head of each batch gets the list of its plane.
void name_lists(const std::vector<std::int32_t>& of_plane, const Seen& seen, TileList* list) {
  if (list->lists == 1) return;
  list->batches = seen.planes.batches();
  for (std::int64_t batch = 0; batch < list->batches; ++batch) {
    for (std::int64_t head = 0; head < seen.heads; ++head) {
      list->head_list.push_back(
          of_plane[static_cast<std::size_t>(seen.planes.plane_of(batch, head))]);
    }
  }
}

// The sizes of a list's arrays. The next appended list begins there.
struct Ends {
  std::int64_t rows = 0;  // entries of row_begin
  std::int64_t tiles = 0;
  std::int64_t words = 0;

  static Ends of(const TileList& list) {
    return {std::ssize(list.row_begin), std::ssize(list.tiles), std::ssize(list.mask_words)};
  }
};

// Appends the row of a head. Requires: rows are appended in order, so the row's number is the
// number of rows so far.
void append_row(const std::vector<pattern::BlockRun>& runs, std::int64_t head, std::int64_t row,
                const BlockMask* mask, TileList* list) {
  std::size_t at = list->tiles.size();
  std::int64_t full = 0, partial = 0;
  for (const pattern::BlockRun& run : runs) (run.partial ? partial : full) += run.end - run.begin;
  list->full_tiles += full;
  list->partial_tiles += partial;
  list->tiles.resize(at + static_cast<std::size_t>(full + partial));
  if (!list->tile_masks.empty()) list->tile_masks.resize(list->tiles.size(), kTileAllVisible);
  std::uint32_t* const tiles = list->tiles.data();
  for (const pattern::BlockRun& run : runs) {
    for (std::int64_t tile = run.begin; tile < run.end; ++tile, ++at) {
      tiles[at] = static_cast<std::uint32_t>(tile) * 2 + (run.partial ? 1 : 0);
      if (mask == nullptr || !run.partial) continue;
      const std::int32_t seen = mask->append(head, row, tile, &list->mask_words);
      if (seen == kTileAllVisible) continue;
      if (list->tile_masks.empty()) {
        base::reserve_huge(&list->tile_masks, list->tiles.capacity());
        list->tile_masks.resize(list->tiles.size(), kTileAllVisible);
      }
      list->tile_masks[at] = seen;
    }
  }
  list->row_begin.push_back(std::ssize(list->tiles));
}

// Whether the lists between two pairs of ends are equal, apart from their place in the arrays.
bool are_equal(const TileList& list, const Ends& a, const Ends& a_end, const Ends& b,
               const Ends& b_end) {
  if (a_end.tiles - a.tiles != b_end.tiles - b.tiles) return false;
  if (a_end.words - a.words != b_end.words - b.words) return false;
  const auto equal = [](const auto& values, std::int64_t from, std::int64_t end, std::int64_t with,
                        const auto& same) {
    return std::equal(values.begin() + from, values.begin() + end, values.begin() + with, same);
  };
  const auto rows = [&](std::int64_t x, std::int64_t y) { return x - a.tiles == y - b.tiles; };
  const auto masks = [&](std::int32_t x, std::int32_t y) {
    return x < 0 || y < 0 ? x == y : x - a.words == y - b.words;
  };
  return equal(list.row_begin, a.rows, a_end.rows, b.rows, rows) &&
         equal(list.tiles, a.tiles, a_end.tiles, b.tiles, std::equal_to<>()) &&
         (list.tile_masks.empty() ||
          equal(list.tile_masks, a.tiles, a_end.tiles, b.tiles, masks)) &&
         equal(list.mask_words, a.words, a_end.words, b.words, std::equal_to<>());
}

// Removes everything after the ends.
void cut_off(const Ends& ends, TileList* list) {
  for (std::int64_t at = ends.tiles; at < std::ssize(list->tiles); ++at) {
    const bool partial = (list->tiles[static_cast<std::size_t>(at)] & 1) != 0;
    --(partial ? list->partial_tiles : list->full_tiles);
  }
  list->row_begin.resize(static_cast<std::size_t>(ends.rows));
  list->tiles.resize(static_cast<std::size_t>(ends.tiles));
  if (!list->tile_masks.empty()) list->tile_masks.resize(static_cast<std::size_t>(ends.tiles));
  list->mask_words.resize(static_cast<std::size_t>(ends.words));
}

// Makes the list tile by tile, in its final arrays. If the list of a plane equals an earlier one,
// it is removed again. The limit on tiles applies to the sum over all planes.
void make_listed(const Seen& seen, const BlockLayout* layout, const BlockMask& mask,
                 TileList* list) {
  // Reserves a little more than the estimate, because a list that outgrows its memory is copied.
  const std::int64_t tiles = check_tiles(*list, seen);
  base::reserve_huge(&list->tiles, static_cast<std::size_t>(tiles + tiles / 16));
  const bool large = is_large(*list, seen);
  std::vector<Ends> lists = {{}};  // where each distinct list begins, and the end of the last;
                                   // there are few
  std::vector<std::int32_t> list_of;
  std::int64_t cut_tiles = 0;
  seen.each(*list, [&](pattern::Classifier& classifier, std::int64_t head) {
    const Ends begin = lists.back();
    list->row_begin.push_back(begin.tiles);
    const std::vector<pattern::BlockRun>* runs = nullptr;
    for (std::int64_t row = 0; row < list->row_tiles; ++row) {
      if (row == 0 || !classifier.repeats(row)) runs = &classifier.row(head, row);
      append_row(*runs, head, row, layout ? &mask : nullptr, list);
      const auto of_row = list->row_begin.end()[-1] - list->row_begin.end()[-2];
      base::charge(of_row / 2);
      if (large && cut_tiles + std::ssize(list->tiles) > kMaxEntries) refuse_tiles(*list);
      check_words(*list);
    }
    const Ends end = Ends::of(*list);
    const auto before = std::ssize(lists) - 1;
    base::charge(before * (1 + (end.tiles - begin.tiles) / 64));
    std::int64_t which = 0;
    while (which < before && !are_equal(*list, begin, end, lists[static_cast<std::size_t>(which)],
                                        lists[static_cast<std::size_t>(which + 1)])) {
      ++which;
    }
    list_of.push_back(static_cast<std::int32_t>(which));
    if (which < before) {
      cut_tiles += end.tiles - begin.tiles;
      cut_off(begin, list);
      return true;
    }
    append_order(which, list);
    lists.push_back(end);
    return true;
  });
  list->lists = std::ssize(lists) - 1;
  name_lists(list_of, seen, list);
}

// Makes the list as groups of rows. Returns false and leaves the list unchanged if that would not
// be better than a record for each row.
bool make_groups(const Seen& seen, TileList* list) {
  std::vector<RowGroups> lists;
  std::vector<std::int32_t> list_of;
  const bool all_good = seen.each(*list, [&](pattern::Classifier& classifier, std::int64_t head) {
    std::optional<RowGroups> made = find_groups(classifier, head);
    if (!made || !made->are_better()) return false;
    base::charge(1 + std::ssize(lists));
    const auto equal = std::find(lists.begin(), lists.end(), *made);
    list_of.push_back(static_cast<std::int32_t>(equal - lists.begin()));
    if (equal == lists.end()) lists.push_back(std::move(*made));
    return true;
  });
  if (!all_good) return false;
  list->tile_order = kernels::TileOrder::kRuns;
  for (const RowGroups& one : lists) {
    list->group_count = std::max<std::int64_t>(list->group_count, std::ssize(one.groups));
  }
  for (const RowGroups& one : lists) {
    const auto records = static_cast<int>(list->runs.size());
    for (kernels::RowGroup group : one.groups) {
      group.first += records;
      list->groups.push_back(group);
    }
    list->runs.insert(list->runs.end(), one.runs.begin(), one.runs.end());
    list->groups.resize(
        base::round_up(list->groups.size(), static_cast<std::size_t>(list->group_count)),
        kernels::RowGroup{0, 0, 0, 0, 1, 0, {}});
    const RowSums sums = one.sums();
    list->full_tiles += sums.full_tiles;
    list->partial_tiles += sums.partial_tiles;
    list->longest_row = std::max(list->longest_row, sums.longest_row);
    list->empty_rows += sums.empty_rows;
  }
  list->lists = std::ssize(lists);
  name_lists(list_of, seen, list);
  return true;
}

// Makes the list as runs. Returns false and leaves the list unchanged if some row has more than two
// runs.
bool make_runs(const Seen& seen, TileList* list) {
  using Runs = std::vector<kernels::RowRuns>;
  std::vector<Runs> lists;
  std::vector<std::int32_t> list_of;
  const bool all_runs = seen.each(*list, [&](pattern::Classifier& classifier, std::int64_t head) {
    Runs made;
    made.reserve(static_cast<std::size_t>(list->row_tiles));
    for (std::int64_t row = 0; row < list->row_tiles; ++row) {
      const std::optional<kernels::RowRuns> runs = row_of_runs(classifier.row(head, row));
      if (!runs) return false;
      made.push_back(*runs);
    }
    base::charge(std::ssize(lists) * (1 + std::ssize(made) / 16));
    const auto equal = std::find(lists.begin(), lists.end(), made);
    list_of.push_back(static_cast<std::int32_t>(equal - lists.begin()));
    if (equal == lists.end()) lists.push_back(std::move(made));
    return true;
  });
  if (!all_runs) return false;
  list->tile_order = kernels::TileOrder::kRuns;
  for (std::size_t which = 0; which < lists.size(); ++which) {
    list->runs.insert(list->runs.end(), lists[which].begin(), lists[which].end());
    append_order(static_cast<std::int64_t>(which), list);
    for (const kernels::RowRuns& row : lists[which]) {
      const std::int64_t full = std::int64_t{row.full_count[0]} + row.full_count[1];
      list->full_tiles += full;
      list->partial_tiles += row.count - full;
    }
  }
  list->lists = static_cast<std::int64_t>(lists.size());
  name_lists(list_of, seen, list);
  return true;
}

void take_band(const kernels::RowBand& band, TileList* list) {
  list->tile_order = kernels::TileOrder::kBand;
  list->band = band;
  const BandSums sums =
      sum_band(band, list->seq_q, list->seq_k, list->tile_rows, list->tile_columns);
  list->full_tiles = sums.full_tiles;
  list->partial_tiles = sums.tiles - sums.full_tiles;
  list->longest_row = sums.longest_row;
  list->empty_rows = sums.empty_rows;
}

kernels::RowRun row_of_band(const TileList& list, std::int64_t row) {
  return kernels::band_row(list.band, static_cast<int>(list.tile_rows),
                           static_cast<int>(list.tile_columns), static_cast<int>(list.seq_q),
                           static_cast<int>(list.seq_k), static_cast<int>(row));
}

// The number of tiles of each list.
std::vector<std::int64_t> kept_of_lists(const TileList& tiles) {
  if (tiles.lists == 1) return {tiles.kept_tiles()};
  std::vector<std::int64_t> kept(static_cast<std::size_t>(tiles.lists));
  for (std::int64_t which = 0; which < tiles.lists; ++which) {
    if (!tiles.groups.empty()) {
      for (const kernels::RowGroup& group : tiles.groups_of(which)) {
        kept[static_cast<std::size_t>(which)] += sum_group(group, tiles.runs).tiles();
      }
      continue;
    }
    for (std::int64_t row = 0; row < tiles.row_tiles; ++row) {
      kept[static_cast<std::size_t>(which)] += tiles.row_length(which, row);
    }
  }
  return kept;
}

}  // namespace

bool same_tiles(const TileList& a, const TileList& b) {
  const auto numbers = [](const TileList& list) {
    return std::tuple(list.tile_rows, list.tile_columns, list.seq_q, list.seq_k, list.lists,
                      list.row_tiles, list.column_tiles, list.tile_order, list.group_count,
                      list.batches, list.granule_row_shift, list.granule_column_shift,
                      list.full_tiles, list.partial_tiles, list.longest_row, list.empty_rows);
  };
  static_assert(std::has_unique_object_representations_v<kernels::RowBand>);
  return numbers(a) == numbers(b) && a.row_begin == b.row_begin && a.tiles == b.tiles &&
         a.runs == b.runs && a.groups == b.groups &&
         std::memcmp(&a.band, &b.band, sizeof a.band) == 0 && a.row_order == b.row_order &&
         a.head_list == b.head_list && a.tile_masks == b.tile_masks && a.mask_words == b.mask_words;
}

std::int64_t TileList::row_length(std::int64_t which, std::int64_t row) const {
  if (tile_order == kernels::TileOrder::kBand) return row_of_band(*this, row).count;
  if (tile_order == kernels::TileOrder::kRuns) return record(which, row).count;
  const std::int64_t* const begin = row_begin.data() + which * (row_tiles + 1) + row;
  return begin[1] - begin[0];
}

std::vector<pattern::BlockRun> TileList::row_runs(std::int64_t which, std::int64_t row) const {
  if (tile_order == kernels::TileOrder::kBand) return runs_of_row(row_of_band(*this, row));
  if (tile_order == kernels::TileOrder::kRuns) return runs_of_row(record(which, row));
  std::vector<pattern::BlockRun> all;
  const std::int64_t* const begin = row_begin.data() + which * (row_tiles + 1) + row;
  for (std::int64_t at = begin[0]; at < begin[1]; ++at) {
    const std::uint32_t tile = tiles[static_cast<std::size_t>(at)];
    add_run({tile / 2, tile / 2 + 1, tile % 2 != 0}, &all);
  }
  return all;
}

std::span<const kernels::RowGroup> TileList::groups_of(std::int64_t which) const {
  return std::span(groups).subspan(static_cast<std::size_t>(which * group_count),
                                   static_cast<std::size_t>(group_count));
}

kernels::RowRuns TileList::record(std::int64_t which, std::int64_t row) const {
  if (groups.empty()) return runs[static_cast<std::size_t>(which * row_tiles + row)];
  const auto number = static_cast<int>(row);
  const auto of_list = groups_of(which);
  return std::ranges::find_if(of_list, [&](const auto& group) { return group.has_row(number); })
      ->runs_of(runs.data(), number);
}

std::int32_t TileList::row_at(std::int64_t which, std::int64_t place) const {
  if (groups.empty()) return row_order[static_cast<std::size_t>(which * row_tiles + place)];
  const auto number = static_cast<int>(place);
  const auto of_list = groups_of(which);
  return std::ranges::find_if(of_list, [&](const auto& group) { return group.has_place(number); })
      ->row_at(number);
}

std::int64_t TileList::device_bytes() const {
  const auto bytes = [](const auto& array) {
    return static_cast<std::int64_t>(array.size() * sizeof(array[0]));
  };
  return bytes(row_begin) + bytes(tiles) + bytes(runs) + bytes(groups) + bytes(row_order) +
         bytes(head_list) + bytes(tile_masks) + bytes(mask_words);
}

pattern::Extent extent_of(const Problem& problem) {
  return {problem.seq_q, problem.seq_k, problem.q_position(), problem.k_position()};
}

pattern::Placement placement_of(const Problem& problem) {
  return pattern::Placement::of(extent_of(problem), problem.context());
}

TileList make_tile_list(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form) {
  return make_tile_list(problem, placement_of(problem), tile_rows, tile_columns, layout, form);
}

TileList make_tile_list(const Problem& problem, const pattern::Placement& placement,
                        std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form) {
  TileList list;
  list.tile_rows = tile_rows;
  list.tile_columns = tile_columns;
  list.seq_q = pattern::total_length(placement.q);
  list.seq_k = pattern::total_length(placement.k);
  const Planes planes(problem);
  const Seen seen = {planes, placement, problem.heads};
  // This throws for impossible sizes, whatever the pattern is.
  const pattern::Classifier grid(Pattern(), placement, tile_rows, tile_columns);
  list.row_tiles = grid.rows();
  list.column_tiles = grid.columns();
  // The shortest form that is possible: a band, else runs, else a list tile by tile. Patterns with
  // blocks() are listed, because only lists have mask words.
  if (form != ListForm::kListed && layout == nullptr) {
    const Pattern* const only = planes.only_pattern();
    const auto band = form != ListForm::kShortest || only == nullptr
                          ? std::nullopt
                          : find_band(*only, placement, tile_rows, tile_columns);
    if (band) {
      take_band(*band, &list);
      return list;
    }
    if (has_runs(problem.pattern)) {
      if (form != ListForm::kRecords && make_groups(seen, &list)) return list;
      if (make_runs(seen, &list)) return list;
    }
  }
  const BlockMask mask =
      layout ? BlockMask(*layout, placement, tile_rows, tile_columns) : BlockMask();
  list.granule_row_shift = mask.row_shift();
  list.granule_column_shift = mask.column_shift();
  make_listed(seen, layout, mask, &list);
  return list;
}

Density tile_density(const Problem& problem, const TileList& tiles, std::int64_t batch) {
  const std::vector<std::int64_t> kept = kept_of_lists(tiles);
  double sum = 0;
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    sum += static_cast<double>(kept[static_cast<std::size_t>(tiles.list_of(head, batch))]);
  }
  const double all = static_cast<double>(problem.heads) * static_cast<double>(tiles.row_tiles) *
                     static_cast<double>(tiles.column_tiles);
  return {all > 0 ? sum / all : 0.0};
}

Density tile_density(const Problem& problem, const TileList& tiles) {
  const std::vector<std::int64_t> kept = kept_of_lists(tiles);
  const std::int64_t batch = std::max<std::int64_t>(1, problem.batch);
  double sum = 0;
  for (std::int64_t b = 0; b < tiles.batches; ++b) {
    const auto like_it = static_cast<double>((batch - b + tiles.batches - 1) / tiles.batches);
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      sum += like_it * static_cast<double>(kept[static_cast<std::size_t>(tiles.list_of(head, b))]);
    }
  }
  const double all = static_cast<double>(batch) * static_cast<double>(problem.heads) *
                     static_cast<double>(tiles.row_tiles) * static_cast<double>(tiles.column_tiles);
  return {all > 0 ? sum / all : 0.0};
}

Density block_density(const Problem& problem, std::int64_t block_rows, std::int64_t block_columns) {
  const pattern::Placement placement = placement_of(problem);
  const Planes planes(problem);
  const pattern::Classifier grid(Pattern(), placement, block_rows, block_columns);
  const double all = static_cast<double>(grid.rows()) * static_cast<double>(grid.columns());
  if (const Pattern* only = planes.only_pattern()) {
    if (const auto band = find_band(*only, placement, block_rows, block_columns)) {
      const BandSums sums =
          sum_band(*band, problem.seq_q, problem.seq_k, block_rows, block_columns);
      return {all > 0 ? static_cast<double>(sums.tiles) / all : 0.0};
    }
  }
  const std::vector<double> times = planes.times();
  const bool runs = has_runs(problem.pattern);
  std::size_t plane = 0;
  double kept = 0;
  planes.each(placement, block_rows, block_columns,
              [&](pattern::Classifier& classifier, std::int64_t head) {
                const double of_plane = times[plane++];
                const auto groups = runs ? find_groups(classifier, head) : std::nullopt;
                if (groups) {
                  kept += of_plane * static_cast<double>(groups->sums().tiles());
                  return true;
                }
                for (std::int64_t row = 0; row < classifier.rows(); ++row) {
                  for (const pattern::BlockRun& run : classifier.row(head, row)) {
                    kept += of_plane * static_cast<double>(run.end - run.begin);
                  }
                }
                return true;
              });
  const double heads = std::accumulate(times.begin(), times.end(), 0.0);
  return {all > 0 ? kept / (heads * all) : 0.0};
}

}  // namespace annulus::attention

namespace annulus::inline v0 {

Density pair_density(const Problem& problem, const WorkLimit& limit) {
  validate(problem);
  const base::Work work(limit, "counting pairs");
  const attention::Planes planes(problem);
  const std::vector<double> times = planes.times();
  std::size_t plane = 0;
  double visible = 0;
  planes.each_pattern([&](const Pattern& seen, std::int64_t head) {
    visible += times[plane++] * static_cast<double>(pattern::visible_pairs(
                                    seen, head, attention::extent_of(problem), problem.context()));
  });
  const double all = static_cast<double>(problem.seq_q) * static_cast<double>(problem.seq_k) *
                     std::accumulate(times.begin(), times.end(), 0.0);
  return {all > 0 ? visible / all : 0.0};
}

}  // namespace annulus::inline v0
