#ifndef ANNULUS_KERNELS_BATCH_CHUNK_PRODUCER_CUH_
#define ANNULUS_KERNELS_BATCH_CHUNK_PRODUCER_CUH_

// The producer of chunk_wgmma_forward: one warp starts the copies of every work, Q once and K and V
// step by step, as far ahead as the consumers release buffers. Each lane copies boxes of its own: a
// query of Q, or a unit of neighbouring keys that share a page. The lane has looked up the place of
// the unit one step earlier.
//
// A step always fills its whole buffers. It reads only keys that some query of the tile sees and
// whose pages exist. If a step has other keys too, it is copied in boxes of 16 keys, and if a box
// has only some of its keys, key by key. For keys that must not be read, the box is outside of the
// tensor and becomes zeros. Without zeros, old or uninitialised numbers in V's buffer could be NaN,
// and 0 times NaN would reach the output.

#include "kernels/batch/chunk_layout.cuh"
#include "kernels/wgmma/ring_place.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_copy.cuh"
#include "tile/key_rows.cuh"

namespace annulus::kernels {

template <typename Shape>
class ChunkProducer {
  using Layout = ChunkLayout<Shape>;
  using KeysThere = tile::KeysThere<Shape::kTileColumns>;
  enum : int {
    kColumns = Shape::kTileColumns,
    kRuns = Shape::kRuns,
    kUnit = Shape::kUnit,  // keys whose place is looked up and copied together
    kUnits = kColumns / kUnit,
    kLooks = (kUnits + 31) / 32,  // lane i has units i, 32 + i, ... of a step
    kParts = kColumns / kPartRows,
    kOfPart = kUnit < kPartRows ? 1 : kUnit / kPartRows,  // parts of a unit
    kWords = KeysThere::kWords,
    kPaged = static_cast<Pages>(Shape::kPages) != Pages::kNone,
  };
  static_assert(kUnit == 1 || (kUnit % kPartRows == 0 && kColumns % kUnit == 0 && kUnits <= 32),
                "a unit is one key, or whole parts of a step");
  static_assert(kColumns % kPartRows == 0 && kColumns <= 128, "a step has parts of 16 keys");

 public:
  __device__ __forceinline__ ChunkProducer(const BatchParams& params, const BatchMaps& maps,
                                           unsigned char* memory)
      : params_(params),
        maps_(maps),
        memory_(memory),
        shared_(ptx::shared_address(memory)),
        lane_(static_cast<int>(threadIdx.x % 32)) {}

  __device__ __forceinline__ void run() {
    unsigned parity = 0;
    // The number of works is read again for each work, because a register for it would spill.
#pragma unroll 1
    for (int at = static_cast<int>(blockIdx.x);
         at < params_.tables.header->works * params_.row_columns;
         at += static_cast<int>(gridDim.x)) {
      // The consumers have released the last Q, and also the work before it.
      ptx::wait(shared_ + Layout::kQueriesFree, parity ^ 1);
      auto& work = reinterpret_cast<ChunkWork*>(memory_ + Layout::kWorks)[parity];
      describe(&work, params_.tables.works[at / params_.row_columns], at % params_.row_columns);
      start_queries(work);
      if (work.steps > 0) start_steps(work);
      parity ^= 1;
    }
  }

 private:
  // The place of the rows of K, or of V, for the current head, as coordinates of a tensor map.
  struct Origin {
    int head;
    int page;  // without pages: the request's slab
    int row;   // without pages: the request's key 0
    bool one_page;
  };
  // The request's pages of K and of V.
  struct Tables {
    const int* k;
    const int* v;
  };
  // The places of a lane's units of a step.
  struct Places {
    int k_page[kLooks];
    int v_page[kLooks];
    int row[kLooks];  // row of the unit's first key
  };
  // The keys that a step copies.
  struct Step {
    int first_key;
    bool whole;  // all keys exist
    KeysThere there;
  };
  // An axis whose stride is 0 has one entry.
  static __device__ __forceinline__ int along(long long stride, int index) {
    return stride != 0 ? index : 0;
  }

  // Stores the work for the consumers and for this warp. `column` counts the row's columns.
  __device__ __forceinline__ void describe(ChunkWork* to, const BatchWork& work, int column) const {
    if (lane_ < static_cast<int>(sizeof(BatchRow) / 4)) {
      reinterpret_cast<int*>(&to->row)[lane_] =
          reinterpret_cast<const int*>(params_.tables.rows + work.row)[lane_];
    }
    __syncwarp();
    if (lane_ == 0) {
      const bool exists = tile::has_rows<Shape>(params_, params_.tables.header->places, to->row);
      const int left = exists ? to->row.tiles - work.part * params_.part_tiles : 0;
      to->work = work;
      to->column = to->row.column + column;
      to->steps = left < params_.part_tiles ? left : params_.part_tiles;
    }
    __syncwarp();
  }

  // Copies the queries of a work, each with the heads of the tile: the box of a lane is one query.
  // Queries that do not exist are zeros.
  __device__ __forceinline__ void start_queries(const ChunkWork& work) const {
    using Queries = typename Layout::Queries;
    const int tile_queries = Shape::kTileRows / params_.tile_heads;
    const int query_bytes = params_.tile_heads * Queries::kRowBytes;
    if (lane_ == 0) {
      ptx::arrive_expecting(shared_ + Layout::kQueriesFull,
                            static_cast<unsigned>(tile_queries * query_bytes * Queries::kCount));
    }
    __syncwarp();
    const int first_head = work.column % params_.head_tiles * params_.tile_heads;
    const int group = work.column / params_.head_tiles;
#pragma unroll 1
    for (int query = lane_; query < tile_queries; query += 32) {
      const int row = query < work.row.queries ? work.row.q_row + query : -1;
#pragma unroll
      for (int panel = 0; panel < Queries::kCount; ++panel) {
        ptx::load_box(
            shared_ + Layout::kQueries + panel * Queries::kPanelBytes + query * query_bytes,
            &maps_.q, shared_ + Layout::kQueriesFull,
            {panel * Queries::kPanelColumns, first_head, group, row});
      }
    }
  }

  __device__ __forceinline__ void start_steps(const ChunkWork& work) {
    const tile::PartTiles<kRuns, kColumns, false> tiles(params_, work.row, work.column,
                                                        work.work.part * params_.part_tiles);
    const KeyPlaces& places = params_.tables.header->places;
    const Tables tables = {table_of(places.k_pages, work.row.request),
                           table_of(places.v_pages, work.row.request)};
    const int head = work.column / params_.head_tiles;
    const Origin k = origin(places.k_begin, work.row.request, params_.k_page, params_.k_row,
                            along(params_.k_head, head));
    const Origin v = origin(places.v_begin, work.row.request, params_.v_page, params_.v_row,
                            along(params_.v_head, head));
    Places now = find(tables, work.row.runs, tiles.key(0, 0));
#pragma unroll 1
    for (int i = 0; i < work.steps; ++i) {
      const Step step = resolve(work.row, tiles.key(i, 0), now, k, v);
      Places next = now;
      if (i + 1 < work.steps) next = find(tables, work.row.runs, tiles.key(i + 1, 0));
      const unsigned barriers =
          shared_ + Layout::kStageBarriers + place_.stage * Layout::kStageBarrierBytes;
      ptx::wait(barriers + ptx::kBarrierBytes, place_.parity ^ 1);
      tell(step, work.row.runs);
      if (lane_ == 0) ptx::arrive_expecting(barriers, Layout::Keys::kBytes);
      __syncwarp();
      copy<typename Layout::Keys>(maps_.k, k, now.k_page, now.row, step, barriers,
                                  shared_ + Layout::kKeys + place_.stage * Layout::Keys::kBytes);
      ptx::wait(barriers + 3 * ptx::kBarrierBytes, place_.parity ^ 1);
      if (lane_ == 0) {
        ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes);
      }
      __syncwarp();
      copy<typename Layout::Values>(
          maps_.v, v, now.v_page, now.row, step, barriers + 2 * ptx::kBarrierBytes,
          shared_ + Layout::kValues + place_.stage * Layout::Values::kBytes);
      now = next;
      place_.advance();
    }
  }

  __device__ __forceinline__ Origin origin(const int* begin, int request, long long page_stride,
                                           long long row_stride, int head) const {
    Origin made = {head, 0, 0, page_stride == 0};
    if constexpr (!kPaged) {
      if (begin == nullptr) {
        made.page = along(page_stride, request);
      } else {
        made.row = along(row_stride, begin[request]);
      }
    }
    return made;
  }

  __device__ __forceinline__ const int* table_of(const PageTableParams& table, int request) const {
    if constexpr (!kPaged) return nullptr;
    return table.ids + (table.begin != nullptr ? table.begin[request] : request * table.width);
  }

  // Looks up the places of the units of a step.
  __device__ __forceinline__ Places find(const Tables& tables, const KeyRuns& runs,
                                         int first_key) const {
    Places places;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) {
      const int unit = 32 * i + lane_;
      const int key = first_key + kUnit * unit;
      places.k_page[i] = places.v_page[i] = 0;
      places.row[i] = key;
      if constexpr (kPaged) {
        const int entry = page_of(params_, key);
        places.row[i] = key - entry * params_.page_rows;
        if (unit < kUnits && runs.template sees_some<kRuns>(key, key + kUnit)) {
          places.k_page[i] = tables.k[entry];
          places.v_page[i] = tables.v == tables.k ? places.k_page[i] : tables.v[entry];
        }
      }
    }
    return places;
  }

  // Computes which keys of a step exist.
  __device__ __forceinline__ Step resolve(const BatchRow& row, int first_key, const Places& places,
                                          const Origin& k, const Origin& v) const {
    const KeyRuns& runs = row.runs;
    const auto are_pages = [&](int k_page, int v_page) {
      return static_cast<unsigned>(k_page) < static_cast<unsigned>(params_.k_page_count) &&
             static_cast<unsigned>(v_page) < static_cast<unsigned>(params_.v_page_count);
    };
    // Coordinates of rows have 32 bits.
    constexpr int kMaxRow = (1 << 30) - 1;
    unsigned wrong[kLooks];  // units without a valid place, one bit for each lane
    bool whole = true;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) {
      const int unit = 32 * i + lane_;
      const int key = first_key + kUnit * unit;
      const bool is_place = kPaged ? are_pages(places.k_page[i], places.v_page[i])
                                   : k.row <= kMaxRow && v.row <= kMaxRow;
      const bool is_wrong =
          !is_place && unit < kUnits && runs.template sees_some<kRuns>(key, key + kUnit);
      if (is_wrong) {
        ptx::reduce_min(&params_.tables.header->status.first, status_of(row.request, kNoSuchPage));
      }
      wrong[i] = __ballot_sync(0xffffffffu, is_wrong);
      whole =
          whole && (unit >= kUnits || (!is_wrong && runs.template covers<kRuns>(key, key + kUnit)));
    }
    Step step = {first_key, __all_sync(0xffffffffu, whole) != 0, KeysThere::every()};
    if (step.whole) return step;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int key = 32 * i + lane_;
      const unsigned of_unit =
          kUnit == 1 ? wrong[i < kLooks ? i : 0] >> lane_ : wrong[0] >> (key / kUnit);
      step.there.words[i] =
          __ballot_sync(0xffffffffu, key < kColumns && (of_unit & 1u) == 0 &&
                                         runs.template sees<kRuns>(first_key + key));
    }
    return step;
  }

  // Writes the data about the step at place_ for the consumers.
  __device__ __forceinline__ void tell(const Step& step, const KeyRuns& runs) const {
    const bool full = runs.template all_see<kRuns>(step.first_key, step.first_key + kColumns);
    unsigned word = lane_ == 0 ? static_cast<unsigned>(step.first_key) : !(step.whole && full);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if (lane_ == 2 + i) word = step.there.words[i];
    }
    if (lane_ < 2 + kWords) {
      ptx::store_shared(shared_ + Layout::kSteps + place_.stage * Layout::kStepBytes + 4 * lane_,
                        word);
    }
    __syncwarp();
  }

  // Copies K or V of a step.
  template <typename Panels>
  __device__ __forceinline__ void copy(const KeyMaps& maps, const Origin& origin,
                                       const int (&pages)[kLooks], const int (&rows)[kLooks],
                                       const Step& step, unsigned full, unsigned buffer) const {
    // Copies the box whose first row is row `in_step` of the step.
    const auto load = [&](const TensorMap& map, int in_step, int row, int page) {
#pragma unroll
      for (int panel = 0; panel < Panels::kCount; ++panel) {
        ptx::load_box(buffer + panel * Panels::kPanelBytes + in_step * Panels::kRowBytes, &map,
                      full, {panel * Panels::kPanelColumns, row, origin.head, page});
      }
    };
    const auto page_of_unit = [&](int page) {
      return !kPaged ? origin.page : origin.one_page ? 0 : page;
    };
    if constexpr (kUnit > 1) {
      if (step.whole) {
        if (lane_ < kUnits) {
          load(maps.unit, lane_ * kUnit, origin.row + rows[0], page_of_unit(pages[0]));
        }
        return;
      }
    }
    // The word of `there` that contains the bit of a key.
    const auto word_of = [&](int key) {
      unsigned word = step.there.words[0];
#pragma unroll
      for (int i = 1; i < kWords; ++i) {
        if (key >= 32 * i) word = step.there.words[i];
      }
      return word;
    };
    unsigned in_rows = 0xffffffffu;  // parts of a step that are copied key by key
    if constexpr (kUnit > 1) {
      const int part = lane_ < kParts ? lane_ : 0;
      const unsigned keys = word_of(part * kPartRows) >> (part % 2 * kPartRows) & 0xffffu;
      in_rows = __ballot_sync(0xffffffffu, keys != 0 && keys != 0xffffu);
      const int page = __shfl_sync(0xffffffffu, pages[0], part / kOfPart);
      const int row = __shfl_sync(0xffffffffu, rows[0], part / kOfPart);
      if (lane_ < kParts && (in_rows >> lane_ & 1u) == 0) {
        load(kUnit == kPartRows ? maps.unit : maps.part, part * kPartRows,
             keys != 0 ? origin.row + row + part % kOfPart * kPartRows : -kPartRows,
             page_of_unit(page));
      }
    }
#pragma unroll 1
    for (int first = 0; first < kColumns; first += 32) {
      if ((in_rows >> (first / kPartRows) & 3u) == 0) continue;
      const int key = first + lane_;
      int page = pages[0];
      int row = rows[0];
      if constexpr (kUnit > 1) {
        page = __shfl_sync(0xffffffffu, pages[0], key / kUnit % 32);
        row = __shfl_sync(0xffffffffu, rows[0], key / kUnit % 32) + key % kUnit;
      } else {
#pragma unroll
        for (int i = 1; i < kLooks; ++i) {
          if (first == 32 * i) page = pages[i], row = rows[i];
        }
      }
      if (key < kColumns && (in_rows >> (key / kPartRows) & 1u) != 0) {
        const bool is_there = word_of(key) >> (key % 32) & 1u;
        load(maps.row, key, is_there ? origin.row + row : -1, page_of_unit(page));
      }
    }
  }

  const BatchParams& params_;
  const BatchMaps& maps_;
  unsigned char* const memory_;
  const unsigned shared_;
  const int lane_;
  RingPlace<Shape::kStages> place_;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_BATCH_CHUNK_PRODUCER_CUH_
