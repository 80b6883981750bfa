#ifndef ANNULUS_JOIN_SLICES_H_
#define ANNULUS_JOIN_SLICES_H_

// Slices of rows or of heads as they travel between ranks, and the kernel that cuts and pastes
// them.

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

// What a row of a head is: values of so many bytes, then fp32 numbers.
struct SliceForm {
  std::int64_t value_bytes;
  std::int64_t numbers;
};
inline constexpr SliceForm kOutputs = {2, 1};  // O and LSE
inline constexpr SliceForm kStates = {4, 2};   // acc, m and l
inline constexpr SliceForm kQueries = {2, 0};

// A slice as it travels: values [rows, heads, Dv], then each of the numbers [rows, heads].
struct Slice {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t lse_at = 0;  // of the first number, bytes behind its begin
  std::int64_t bytes = 0;   // a multiple of kSliceAlignment

  bool empty() const { return rows * heads == 0; }
};
Slice make_slice(const SliceForm& form, std::int64_t dim, std::int64_t rows, std::int64_t heads);

// Slices of all ranks behind one another.
struct Slices {
  std::array<Slice, kMostMergeInputs> of;
  std::array<std::int64_t, kMostMergeInputs> begins{};  // bytes
  std::int64_t bytes = 0;                               // of all

  const Slice& at(int rank) const { return of[static_cast<std::size_t>(rank)]; }
  std::int64_t begin(int rank) const { return begins[static_cast<std::size_t>(rank)]; }
};
// With `cut` kAll there is one slice, everything, which all take.
Slices cut_slices(const SliceForm& form, std::int64_t dim, JoinedSlices cut, std::int64_t rows,
                  std::int64_t heads, int ranks);

// The tensors that slices are cut from or pasted into. The kernel that cuts writes nothing through
// them.
struct WholeTensors {
  void* values = nullptr;  // [rows, heads, dim]
  float* lse = nullptr;    // or m
  float* l = nullptr;      // of states
  RowStrides value_strides;
  RowStrides lse_strides;
};
// One way of moving slices.
class SliceMover {
 public:
  // Gets the kernel, which may compile it.
  SliceMover(jit::KernelCache& kernels, jit::Arch arch, const SliceForm& form, bool packs);

  // Slices 0 to `count` - 1 of `slices`, which lie from `memory` on.
  void run(device::LaunchSink& to, const Slices& slices, int count, bool of_rows, char* memory,
           const WholeTensors& whole, std::int64_t rows, std::int64_t heads,
           std::int64_t dim) const;

 private:
  SliceForm form_;
  jit::KernelLookup kernel_;
};

// Carries a group of messages out.
using Exchange = std::function<void(std::span<const SentBytes>, std::span<const ReceivedBytes>)>;

// Every rank's slice to all ranks: this rank's is in its place of `memory` already.
void gather_slices(const Slices& slices, int ranks, int rank, char* memory,
                   const Exchange& exchange);

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_SLICES_H_
