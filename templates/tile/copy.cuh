#ifndef ANNULUS_TILE_COPY_CUH_
#define ANNULUS_TILE_COPY_CUH_

// Copies tiles of a [rows, kColumns] matrix in global memory into swizzled shared memory. Each
// thread owns one 16-byte column of every chunk group and a row in every pass over the tile, so
// that all its addresses are one pointer plus constants:
//
//   pass p, thread i: row i / kPhases + p * kRowsPerPass, chunks i % kPhases + g * kPhases

#include "ptx/async_copy.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

template <int kColumns, int kThreads>
class TileCopier {
  using Layout = Swizzle<kColumns>;
  enum : int {
    kRowsPerPass = kThreads / Layout::kPhases,
    kGroups = Layout::kChunks / Layout::kPhases,
  };
  static_assert(
      kRowsPerPass % 8 == 0,
      "a pass must cover a multiple of eight rows, or the swizzle phase of a thread would "
      "change from pass to pass: use at least two warps");

 public:
  // Row 0 begins `first` elements after `tensor`, which is itself the start of some row. `stride`
  // is the number of elements from row to row.
  __device__ __forceinline__ TileCopier(const void* tensor, long long first, long long stride,
                                        unsigned thread)
      : row_(thread / Layout::kPhases),
        row_bytes_(stride * kElementBytes),
        tensor_(static_cast<const char*>(tensor)),
        base_(tensor_ + first * kElementBytes + row_ * row_bytes_ + thread % Layout::kPhases * 16),
        slot_(Layout::offset(row_, thread % Layout::kPhases)) {}

  // Starts the copy of the kRows rows from first_row on into the tile at `shared`. Rows from `end`
  // on are not read; they become zero, because 0 times a NaN left in shared memory would reach the
  // output.
  template <int kRows>
  __device__ __forceinline__ void start(unsigned shared, int first_row, int end) const {
    const int left = end - first_row - row_;
    copy<kRows>(shared, first_row, [left](int rows) { return left > rows; });
  }

  // Copies `count` rows from `begin` on in the same way.
  template <int kRows>
  __device__ __forceinline__ void start(unsigned shared, int first_row, int begin,
                                        int count) const {
    // One comparison checks both ends: a row before `begin` is a large unsigned number.
    const int row = first_row + row_ - begin;
    copy<kRows>(shared, first_row, [=](int rows) {
      return static_cast<unsigned>(row + rows) < static_cast<unsigned>(count);
    });
  }

 private:
  // `exists_at` returns whether the thread's row, plus a number of rows, is to be read.
  template <int kRows, typename Exists>
  __device__ __forceinline__ void copy(unsigned shared, int first_row,
                                       const Exists& exists_at) const {
    static_assert(kRows % kRowsPerPass == 0,
                  "the rows of a tile must be a multiple of the rows of one pass of all threads");
    const char* source = base_ + first_row * row_bytes_;
#pragma unroll
    for (int pass = 0; pass < kRows / kRowsPerPass; ++pass) {
      const bool exists = exists_at(pass * kRowsPerPass);
      const char* from = exists ? source : tensor_;
      const unsigned bytes = exists ? 16 : 0;
      const unsigned to = shared + slot_ + pass * kRowsPerPass * Layout::kPitch;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        constexpr int kGroupBytes = Layout::kPhases * 16;
        ptx::copy_async_16(to + group * kGroupBytes, from + group * kGroupBytes, bytes);
      }
      source += kRowsPerPass * row_bytes_;
    }
  }

  int row_;
  long long row_bytes_;
  const char* tensor_;  // a valid address for rows that do not exist
  const char* base_;
  unsigned slot_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_COPY_CUH_
