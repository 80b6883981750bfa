#ifndef ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
#define ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_

// The producer of wgmma_forward: one thread starts the copies of every work, Q once and K and V
// step by step. It runs ahead as far as the consumers release buffers.

#include "kernels/wgmma/tile_scheduler.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"

namespace annulus::kernels {

// Copies a box of K or V into the shared memory of every CTA of the cluster.
template <typename Shape>
__device__ __forceinline__ void load_shared(unsigned place, const TensorMap& map, unsigned full,
                                            const ptx::Box& at) {
  if constexpr (Shape::kCluster > 1) {
    ptx::load_box_for((1 << Shape::kCluster) - 1, place, &map, full, at);
  } else {
    ptx::load_box(place, &map, full, at);
  }
}

// All copies of the CTA, by one thread. Each work uses Q's buffer, and then each step uses the K
// and V buffers of the next stage. For each buffer the thread waits until it is free, sets the
// number of expected bytes, and starts the copies. The consumers find the same works and steps by
// the same functions, so no messages are needed except the barriers.
template <typename Shape>
__device__ __forceinline__ void produce(const AttentionParams& params, const TensorMaps& maps,
                                        const WorkParams& work, unsigned shared) {
  using Layout = WgmmaLayout<Shape>;
  constexpr int kBlocks = Shape::kBlocks;
  constexpr int kBlockRows = Shape::kColumns / kBlocks;
  // Each CTA of a cluster copies some of a step's boxes into the shared memory of all: box i of
  // rank r is number i * kCluster + r of the step. The boxes have the size that the host's tensor
  // maps give them (key_rows in attention/kernels/wgmma/tensor_maps.cc). A step has a multiple of
  // 16 keys, and a cluster at most two CTAs, so a box begins at a multiple of the 8 rows after
  // which the swizzle repeats.
  constexpr int kCluster = Shape::kCluster;
  constexpr int kBoxes = kBlocks > kCluster ? kBlocks / kCluster : 1;
  constexpr int kBoxRows = Shape::kColumns / (kBoxes * kCluster);
  constexpr int kBoxesOfBlock = kBlockRows / kBoxRows;
  static_assert(kBoxRows % 8 == 0,
                "a box begins where the swizzle does, which repeats after 8 rows");
  constexpr int kRows = rows_of_work<Shape>();
  constexpr bool kIsList = has_entries<Shape>();
  // For a list, the entries of all tiles of a step are stored, for the consumers; else the column
  // tile of each box.
  constexpr int kWords = kIsList ? kBlocks : kBoxes;
  RingPlace<Shape::kStages> place;
  unsigned queries_parity = 1;
  TileSchedulerProducer<Shape> scheduler(shared, work);
#pragma unroll 1
  for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
    const auto now = find_work<Shape>(params, work, index);
    // A list with fewer segments than other lists ends with empty segments, whose row is -1.
    if (Shape::kSplit && now.row.row < 0) continue;
    const int steps = steps_of<kBlocks>(now.row.count);
    // If O is staged in the rows of Q, the consumers use Q's buffer even without steps: they wait
    // for Q and release it. Only if the output has memory of its own do both sides skip such work
    // (Consumer::compute has the same condition).
    if (Shape::kOutputApart && steps == 0) continue;
    const int kv_head = now.head / params.group;
    const tile::TilePlace queries = tile::query_place<Shape, kRows>(params, now.row.row);
    // The first row of a consumer. A consumer after the end of its segment gets zeros instead of
    // the rows of the next segment, because O may already have overwritten those.
    const auto first_query = [&](int consumer) {
      const int first = queries.first + (Shape::kPackedHeads ? 0 : consumer * 64);
      constexpr bool kSegments =
          static_cast<Positions>(Shape::kPositions) == Positions::kTwoSegments;
      return kSegments && first >= queries.end ? params.seq_q : first;
    };

    ptx::wait(shared + Layout::kQueriesFree, queries_parity);
    queries_parity ^= 1;
    ptx::arrive_expecting(shared + Layout::kQueriesFull,
                          Shape::kConsumers * Layout::Queries::kBytes);
#pragma unroll
    for (int consumer = 0; consumer < Shape::kConsumers; ++consumer) {
#pragma unroll
      for (int panel = 0; panel < Layout::Queries::kCount; ++panel) {
        ptx::load_box(shared + Layout::kQueries + consumer * Layout::Queries::kBytes +
                          panel * Layout::Queries::kPanelBytes,
                      &maps.q, shared + Layout::kQueriesFull,
                      {panel * Layout::Queries::kPanelColumns, first_query(consumer),
                       now.head + (Shape::kPackedHeads ? consumer : 0), now.batch});
      }
    }

    // If the last step has fewer tiles, the row's last tile is copied again, so that the buffers
    // hold valid numbers. The scores of that copy are masked (finish_block), but 0 times an old NaN
    // in V's buffer would reach the output.
    const auto block_of = [&](int box) {
      return (box * kCluster + rank_in_cluster<Shape>()) / kBoxesOfBlock;
    };
    const auto find_word = [&](int step, int which) {
      const int index = step * kBlocks + (kIsList ? which : block_of(which));
      const int entry = index < now.row.count ? index : now.row.count - 1;
      if constexpr (kIsList) {
        return now.row.entry(entry);
      } else {
        return static_cast<unsigned>(now.row.tile(entry).column);
      }
    };
    // The tiles of a list are read one step ahead, because this is a load, and the address of the
    // copy depends on it.
    unsigned words[kWords];
    if constexpr (kIsList) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = steps > 0 ? find_word(0, i) : 0;
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      unsigned next[kWords];
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        if constexpr (kIsList) {
          next[i] = find_word(step + 1, i);
        } else {
          words[i] = find_word(step, i);
        }
      }
      // The first row of a box, counted from params.key_begin, the start of the tensor maps of K
      // and V.
      const auto first_row = [&](int box) {
        const int number = box * kCluster + rank_in_cluster<Shape>();
        int column;
        if constexpr (kIsList) {
          const unsigned entry = kBlocks == 1 || block_of(box) == 0 ? words[0] : words[kBlocks - 1];
          column = now.row.tile_of(entry).column;
        } else {
          column = static_cast<int>(words[box]);
        }
        return tile::key_place<Shape, kBlockRows>(params, column).first +
               number % kBoxesOfBlock * kBoxRows - params.key_begin;
      };
      const unsigned barriers =
          shared + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes;
      const unsigned keys = shared + Layout::kKeys + place.stage * Layout::Keys::kBytes;
      const unsigned values = shared + Layout::kValues + place.stage * Layout::Values::kBytes;
      const auto load = [&](unsigned buffer, int row_bytes, const TensorMap& map, unsigned full,
                            int column) {
#pragma unroll
        for (int box = 0; box < kBoxes; ++box) {
          const int number = box * kCluster + rank_in_cluster<Shape>();
          load_shared<Shape>(buffer + number * kBoxRows * row_bytes, map, full,
                             {column, first_row(box), kv_head, now.batch});
        }
      };
      ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);
      if constexpr (kIsList) {
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
          ptx::store_shared(shared + Layout::kEntries + place.stage * Layout::kEntryBytes + 4 * i,
                            words[i]);
        }
      }
      // The bytes of the whole step, because the copies of the other CTA arrive at this barrier
      // too. They may arrive first, because the other CTA has waited until the consumers of both
      // CTAs released the buffer. The phase still cannot end before the one arrival that the
      // barrier expects, which is this one.
      ptx::arrive_expecting(barriers, Layout::Keys::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Keys::kCount; ++panel) {
        load(keys + panel * Layout::Keys::kPanelBytes, Layout::Keys::kRowBytes, maps.k, barriers,
             panel * Layout::Keys::kPanelColumns);
      }
      ptx::wait(barriers + 3 * ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Values::kCount; ++panel) {
        load(values + panel * Layout::Values::kPanelBytes, Layout::Values::kRowBytes, maps.v,
             barriers + 2 * ptx::kBarrierBytes, panel * Layout::Values::kPanelColumns);
      }
      if constexpr (kIsList) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) words[i] = next[i];
      }
      place.advance();
    }
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
