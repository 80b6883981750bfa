#ifndef ANNULUS_RING_PACK_H_
#define ANNULUS_RING_PACK_H_

// The kernel that packs the rows of a rank's K and V that other ranks need.

#include "device/buffer.h"
#include "jit/kernel_cache.h"
#include "params/pack_params.h"
#include "ring/parcels.h"
#include "ring/plan.h"

namespace annulus::ring {

jit::KernelSpec pack_spec(jit::Arch arch);

// The rows to pack, uploaded to a device, with the kernel. Immutable.
class Packer {
 public:
  // Gets the kernel, which may compile it, and uploads the list of rows. Requires: there is a row
  // to pack.
  Packer(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
         const PackedRows& rows);

  // Queues the copy of the rows from `operands` to `to`, in the form of packed_form(problem).
  // `problem` has the shapes of `operands`. Allocates nothing and does not wait.
  void run(const Problem& problem, const Operands& operands, void* to, abi::CUstream stream) const;

  std::int64_t device_bytes() const { return static_cast<std::int64_t>(list_.bytes()); }

 private:
  std::shared_ptr<const jit::LoadedKernel> kernel_;
  device::Buffer list_;  // an array of kernels::PackedPiece
  int list_length_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PACK_H_
