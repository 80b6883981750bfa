#ifndef ANNULUS_ATTENTION_RUN_FORWARD_H_
#define ANNULUS_ATTENTION_RUN_FORWARD_H_

// A plan that is ready to run on a device: its kernel is loaded and its lists are uploaded. A run
// is a loop over the plan's launches.

#include <memory>

#include "attention/plan/plan.h"
#include "attention/tiles/device_tiles.h"
#include "device/buffer.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"

namespace annulus::attention {

// Immutable; any number of threads may run it at the same time. It keeps its kernel and its device
// memory alive, and through them the context.
class Forward {
 public:
  // Gets the kernel, which may have to be compiled, and uploads what the kernel reads. With a
  // cache, arrays that are on the device already are not uploaded again. Waits for the copies. A
  // plan that reads no lists takes no memory.
  Forward(const device::ContextPointer& context, jit::KernelCache& kernels, LaunchPlan plan,
          DeviceTileCache* lists = nullptr);

  const LaunchPlan& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // How the kernel was obtained. It has no kernel if the plan launches nothing.
  const jit::KernelLookup& lookup() const { return lookup_; }

  // Queues the launches on `stream`: no allocation, no lock, no waiting. Throws
  // Error{kInvalidArgument} as validate() does, before anything is launched, and Error{kDevice}.
  // `workspace` has plan().workspace_bytes and is 16-byte aligned.
  void run(abi::CUstream stream, const Operands& operands, void* workspace = nullptr) const {
    device::StreamSink to(stream);
    put(to, operands, lists(), workspace);
  }
  // Sends the launches that run() would queue to `to` instead. `lists` is lists() with some
  // pointers replaced by the caller; the lists of batch b follow those of batch b - 1. Throws as
  // run().
  void put(device::LaunchSink& to, const Operands& operands, const kernels::TileListParams& lists,
           void* workspace = nullptr) const;

  // Sends the launches of one of plan().launches, without a check of the operands.
  void put_range(device::LaunchSink& to, const Operands& operands,
                 const kernels::TileListParams& lists, const BatchRange& range,
                 void* workspace) const;

  // Throws the error that run() would throw for these operands before it launches anything.
  void check(const Operands& operands) const;

  // The kernel's parameters for a range of batches.
  kernels::AttentionParams parameters(const Operands& operands,
                                      const kernels::TileListParams& lists,
                                      const BatchRange& range) const;

  // Calls f(const void*, bytes) for each piece of device memory that this object holds; pieces with
  // the same pointer are the same memory.
  template <typename F>
  void each_memory(F f) const {
    if (tiles_ != nullptr) f(static_cast<const void*>(tiles_.get()), tiles_->bytes());
    if (tables_ != nullptr) {
      f(static_cast<const void*>(tables_.get()), static_cast<std::int64_t>(tables_->bytes()));
    }
  }

  // The plan's lists on the device; null pointers if the plan launches nothing.
  const kernels::TileListParams& lists() const { return parameters_.tiles; }

 private:
  // Uploads tables_, with pointers to them in parameters_.
  void upload_tables(DeviceTileCache* cache);
  void launch(device::LaunchSink& to, const Operands& operands, const BatchRange& range,
              const kernels::AttentionParams& parameters, void* workspace) const;
  void place_slots(void* workspace, kernels::SplitParams* split) const;
  // Queues the launch that joins the parts of split rows, which are in the slots of the workspace.
  void combine(device::LaunchSink& to, const BatchRange& range,
               const kernels::AttentionParams& parameters) const;

  device::ContextPointer context_;
  LaunchPlan plan_;
  jit::KernelLookup lookup_;
  jit::KernelLookup combine_;                 // combine_splits, if rows are split
  std::shared_ptr<const DeviceTiles> tiles_;  // null if the plan launches nothing
  // Arrays of the parts, the mask, positions, the score and the order of works, in this order.
  std::shared_ptr<const device::Buffer> tables_;
  const std::int32_t* order_ = nullptr;  // work_order() of a plan with a head start, in tables_
  kernels::AttentionParams parameters_;  // everything but the operands
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_RUN_FORWARD_H_
