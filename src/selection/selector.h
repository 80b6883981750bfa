#ifndef ANNULUS_SELECTION_SELECTOR_H_
#define ANNULUS_SELECTION_SELECTOR_H_

// A selection that is ready to run on a device: its kernels are loaded, and its bits are uploaded.
// A run puts the kernels that choose and list blocks on a stream, and returns the addresses of the
// lists.

#include "device/buffer.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"
#include "params/selection_params.h"
#include "selection/selection_plan.h"

namespace annulus::selection {

// The addresses of the scores of a selection's blocks.
struct Scored {
  kernels::CandidateParams candidates;
  const float* scores;     // [B, H, rows, words 32]
  const unsigned* forced;  // bits in the shape of CandidateParams::visible
};

// The kernels that a selector of such a plan loads, without the kernel of the attention.
std::vector<jit::KernelSpec> kernels_of(const SelectionPlan& plan, jit::Arch arch);

// Immutable; any number of threads may run it at the same time, each with a workspace of its own.
class Selector {
 public:
  // Gets the kernels, which may have to be compiled, and waits for the uploads.
  Selector(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
           SelectionPlan plan);

  const SelectionPlan& plan() const { return plan_; }
  std::int64_t device_bytes() const {
    return static_cast<std::int64_t>(bits_.bytes() + coarse_bits_.bytes() + head_list_.bytes());
  }

  // Launches the kernels. It does not allocate, lock or wait. `base` has the lists of the
  // attention's own plan. Launches that are queued later may read the returned lists. Throws
  // Error{kInvalidArgument} for buffers that do not fit the selection, before anything is queued,
  // and Error{kDevice}.
  kernels::TileListParams put(device::LaunchSink& to, const Operands& operands,
                              const SelectionBuffers& buffers, void* workspace,
                              const kernels::TileListParams& base) const;

  // Parts of a run, for the tracker, which does the other parts itself: the scores of all blocks;
  // the bits of the blocks that the caller gave; and these bits as indices in buffers.chosen. They
  // require at most 65535 batches, no coarse pass, and rules and pools that have such a part.
  Scored score_only(abi::CUstream stream, const Operands& operands, void* workspace) const;
  unsigned* mark_only(abi::CUstream stream, const SelectionBuffers& buffers, void* workspace) const;
  void write_chosen(abi::CUstream stream, const SelectionBuffers& buffers, void* workspace) const;

 private:
  // A range of batches of one run. One launch takes all of them.
  struct Call;

  // A kernel by its name, which is also the name of its file; the member that holds it; and whether
  // a selection launches it.
  struct Kernel;
  static const Kernel kKernels[];
  friend std::vector<jit::KernelSpec> kernels_of(const SelectionPlan& plan, jit::Arch arch);

  void check(const SelectionBuffers& buffers, const void* workspace) const;
  const unsigned* visible(const Pass& pass) const;
  kernels::CandidateParams candidates(const Call& call, const Pass& pass) const;
  void score_pooled(const Call& call, const Pass& pass) const;
  void score_antidiagonals(const Call& call) const;
  void choose(const Call& call, const Pass& pass) const;
  void mark(const Call& call) const;
  void list(const Call& call, kernels::ListTilesParams tiles) const;
  void write(const Call& call) const;

  device::ContextPointer context_;
  SelectionPlan plan_;
  device::Function pool_, score_, antidiagonals_, select_, mark_, export_, list_tiles_, order_rows_;
  device::Buffer bits_, coarse_bits_;  // the visible bits and then the forced bits of each pass
  device::Buffer head_list_;           // 0, 1, 2, ...: each head has its own list
};

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_SELECTOR_H_
