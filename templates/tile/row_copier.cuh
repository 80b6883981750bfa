#ifndef ANNULUS_TILE_ROW_COPIER_CUH_
#define ANNULUS_TILE_ROW_COPIER_CUH_

// Copies rows of K or V of a request from their pages (key_window.cuh) to swizzled shared memory.
// Rows of keys that are not there are not read and become zeros, because 0 times an old NaN would
// be NaN.

#include "params/batch_params.h"
#include "ptx/async_copy.cuh"
#include "ptx/memory.cuh"
#include "ptx/opaque.cuh"
#include "tile/key_window.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

// Copies kGroups pieces of 16 bytes, which are kBytes apart.
template <int kBytes, int kGroups>
__device__ __forceinline__ void copy_row(unsigned to, const char* from, bool exists) {
  ptx::copy_async_16_at<(kGroups - 1) * kBytes, (kGroups - 1) * kBytes>(to, from, exists);
  if constexpr (kGroups > 1) copy_row<kBytes, kGroups - 1>(to, from, exists);
}

// Copies kKeys rows of kDim elements at a time by kThreads threads: a warp, or a CTA. In each pass
// a thread has one row and copies a 16-byte column of every chunk group of it, so a quarter of a
// warp reads whole lines.
template <int kDim, int kKeys, int kThreads, Pages kPages, bool kListed>
class RowCopier {
  using Layout = Swizzle<kDim>;
  using Units = KeyUnits<kKeys, kPages, kListed>;
  enum : int {
    kRowsPerPass = kThreads / Layout::kPhases,
    kPasses = kKeys / kRowsPerPass,
    kGroups = Layout::kChunks / Layout::kPhases,
    kUnit = Units::kUnit,
  };
  static_assert(kPasses * kRowsPerPass == kKeys && kRowsPerPass <= 32,
                "the rows of a step must be a multiple of those of a pass, which are bits of one "
                "word");
  static_assert(kUnit % kRowsPerPass == 0 || kRowsPerPass % kUnit == 0,
                "the rows of a pass are part of a unit, or some units");

 public:
  // `data` is the start of the request or its pages, for one head. `row_bytes` is below 2^31.
  __device__ __forceinline__ RowCopier(const char* data, long long row_bytes, unsigned thread)
      : row_(static_cast<int>(thread / Layout::kPhases)),
        data_(data + thread % Layout::kPhases * 16 + row_ % kUnit * row_bytes),
        row_bytes_(static_cast<int>(row_bytes)),
        slot_(
            static_cast<int>(Layout::offset(thread / Layout::kPhases, thread % Layout::kPhases))) {
    ptx::make_opaque(slot_);
  }

  // Starts the copies of a step to the buffer at `shared`. offset(look, unit) is the function of
  // the window for K or for V. All threads call it.
  template <typename Offset>
  __device__ __forceinline__ void start(unsigned shared, const KeysThere<kKeys>& there,
                                        const Offset& offset) const {
    // In nearly all steps all keys are there.
    if (there.all()) {
      const char* of_unit = data_;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int in_unit = pass * kRowsPerPass % kUnit;
        if (in_unit == 0 || kUnit < kRowsPerPass) of_unit = data_ + unit_offset(offset, pass);
        const int rows = kUnit < kRowsPerPass ? 0 : in_unit;
        copy_pass(shared, pass, rows == 0 ? of_unit : ptx::advanced(of_unit, rows, row_bytes_),
                  true);
      }
      return;
    }
    // An array of offsets must be indexed by constants.
    constexpr int kTogether = Units::kLooks > 1 ? kPasses : 1;
#pragma unroll kTogether
    for (int pass = 0; pass < kPasses; ++pass) {
      const int key = pass * kRowsPerPass;
      unsigned word = there.words[0];
#pragma unroll
      for (int i = 1; i < KeysThere<kKeys>::kWords; ++i)
        word = key / 32 == i ? there.words[i] : word;
      const bool exists = word >> (key % 32 + row_) & 1u;
      const int rows = kUnit < kRowsPerPass ? 0 : key % kUnit;
      const char* const from = ptx::advanced(data_ + unit_offset(offset, pass), rows, row_bytes_);
      copy_pass(shared, pass, exists ? from : data_, exists);
    }
  }

 private:
  // The offset of the unit that contains the thread's row of a pass.
  template <typename Offset>
  __device__ __forceinline__ long long unit_offset(const Offset& offset, int pass) const {
    const int unit = pass * kRowsPerPass / kUnit + (kUnit < kRowsPerPass ? row_ / kUnit : 0);
    if constexpr (Units::kLooks == 1) return offset(0, unit);
    // All rows of a pass belong to units of one look-up.
    return offset(pass * kRowsPerPass / kUnit / 32, unit % 32);
  }
  __device__ __forceinline__ void copy_pass(unsigned shared, int pass, const char* from,
                                            bool exists) const {
    // The thread's row is below kRowsPerPass, a power of two, so the pass changes other bits of the
    // row, and its phase can be added by an exclusive or.
    const unsigned to = (shared + static_cast<unsigned>(slot_) +
                         static_cast<unsigned>(pass) * (kRowsPerPass * Layout::kPitch)) ^
                        (Layout::phase(static_cast<unsigned>(pass) * kRowsPerPass) << 4);
    copy_row<Layout::kPhases * 16, kGroups>(to, from, exists);
  }

  int row_;  // the row in a pass
  const char* data_;
  int row_bytes_;
  int slot_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ROW_COPIER_CUH_
