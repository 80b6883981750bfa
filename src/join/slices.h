#ifndef ANNULUS_JOIN_SLICES_H_
#define ANNULUS_JOIN_SLICES_H_

// Slices of rows or heads that travel between ranks, and the kernel that packs and unpacks them.

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "annulus/communicator.h"
#include "annulus/join.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"
#include "params/slices_params.h"

namespace annulus::join {

inline constexpr std::int64_t kSliceAlignment = 256;

// The data of one row of one head: values of `value_bytes` bytes each, then `numbers` fp32 numbers.
struct SliceForm {
  std::int64_t value_bytes;
  std::int64_t numbers;
};
inline constexpr SliceForm kOutputs = {2, 1};  // O and LSE
inline constexpr SliceForm kStates = {4, 2};   // acc, m and l
inline constexpr SliceForm kQueries = {2, 0};

// A slice in the form in which it travels: values [rows, heads, Dv], then each of the numbers
// [rows, heads].
struct Slice {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t lse_at = 0;  // the offset of the first number from the begin of the slice, in bytes
  std::int64_t bytes = 0;   // a multiple of kSliceAlignment

  bool empty() const { return rows * heads == 0; }
};
Slice make_slice(const SliceForm& form, std::int64_t dim, std::int64_t rows, std::int64_t heads);

// The slices of all ranks, one after another.
struct Slices {
  std::array<Slice, kMaxMergeInputs> of;
  std::array<std::int64_t, kMaxMergeInputs> begins{};  // offsets in bytes
  std::int64_t bytes = 0;                              // the total size

  const Slice& at(int rank) const { return of[static_cast<std::size_t>(rank)]; }
  std::int64_t begin(int rank) const { return begins[static_cast<std::size_t>(rank)]; }
};
// If `cut` is kAll, there is one slice with everything, which all ranks receive.
Slices cut_slices(const SliceForm& form, std::int64_t dim, JoinedSlices cut, std::int64_t rows,
                  std::int64_t heads, int ranks);

// The tensors that slices are packed from or unpacked to. The packing kernel does not write through
// these pointers.
struct WholeTensors {
  void* values = nullptr;  // [rows, heads, dim]
  float* lse = nullptr;    // or m of a state
  float* l = nullptr;      // only for states
  RowStrides value_strides;
  RowStrides lse_strides;
};
// A kernel that packs or unpacks slices.
class SliceMover {
 public:
  // Gets the kernel, which may compile it.
  SliceMover(jit::KernelCache& kernels, jit::Arch arch, const SliceForm& form, bool packs);

  // Moves slices 0 to `count` - 1 of `slices`. The slices are stored from `memory` on.
  void run(device::LaunchSink& to, const Slices& slices, int count, bool of_rows, char* memory,
           const WholeTensors& whole, std::int64_t rows, std::int64_t heads,
           std::int64_t dim) const;

 private:
  SliceForm form_;
  jit::KernelLookup kernel_;
};

// Sends and receives a group of messages.
using Exchange = std::function<void(std::span<const SentBytes>, std::span<const ReceivedBytes>)>;

// Sends every rank's slice to all ranks. This rank's slice is in its place in `memory` already.
void gather_slices(const Slices& slices, int ranks, int rank, char* memory,
                   const Exchange& exchange);

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_SLICES_H_
