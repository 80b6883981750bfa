#ifndef ANNULUS_ATTENTION_FORWARD_H_
#define ANNULUS_ATTENTION_FORWARD_H_

// A plan made ready on a device: its kernel is loaded, its lists are uploaded. Running it is a loop
// over launches.

#include <memory>

#include "attention/device_tiles.h"
#include "attention/plan.h"
#include "device/buffer.h"
#include "jit/kernel_cache.h"

namespace annulus::attention {

// Immutable; any number of threads may run it at a time. Holds its kernel, its device memory and
// through them the context.
class Forward {
 public:
  // Gets the kernel, which may compile it, and uploads what the kernel reads; with a cache, not the
  // tile list where it is on the device already. Waits for the copies.
  Forward(const device::ContextPointer& context, jit::KernelCache& kernels, LaunchPlan plan,
          DeviceTileCache* lists = nullptr);

  const LaunchPlan& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // How the kernel was obtained. Without a kernel where the plan launches nothing.
  const jit::KernelLookup& lookup() const { return lookup_; }

  // Queues the launches on `stream`: no allocation, no lock, no waiting. Throws
  // Error{kInvalidArgument} as validate() does, before anything is launched, and Error{kDevice}.
  // `workspace` has plan().workspace_bytes and is 16-byte aligned.
  void run(abi::CUstream stream, const Operands& operands, void* workspace = nullptr) const {
    run(stream, operands, lists(), workspace);
  }
  // The same over other lists of the same tiles, in device memory: as lists() but for what the
  // caller put in its place. Lists of a later batch lie behind those of the first.
  void run(abi::CUstream stream, const Operands& operands, const kernels::TileListParams& lists,
           void* workspace = nullptr) const;

  // Throws what a run of these operands would throw before it launches.
  void check(const Operands& operands) const;

  // What the kernel is launched with for a range of batches.
  kernels::AttentionParams parameters(const Operands& operands,
                                      const kernels::TileListParams& lists,
                                      const BatchRange& range) const;

  // The plan's lists on the device; null pointers where the plan launches nothing.
  const kernels::TileListParams& lists() const { return parameters_.tiles; }

 private:
  void launch(abi::CUstream stream, const Operands& operands, const BatchRange& range,
              kernels::AttentionParams& parameters) const;
  void place_slots(void* workspace, kernels::SplitParams* split) const;
  // Joins the parts of the rows of a launch, which lie in its slots of the workspace.
  void merge(abi::CUstream stream, const BatchRange& range,
             kernels::AttentionParams& parameters) const;

  device::ContextPointer context_;
  LaunchPlan plan_;
  jit::KernelLookup lookup_;
  jit::KernelLookup merge_;                   // where rows are split
  std::shared_ptr<const DeviceTiles> tiles_;  // null where the plan launches nothing
  device::Buffer lists_;  // arrays of the parts, the mask, the score and positions, in turn
  kernels::AttentionParams parameters_;  // all but the operands
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_FORWARD_H_
