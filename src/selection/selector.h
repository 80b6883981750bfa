#ifndef ANNULUS_SELECTION_SELECTOR_H_
#define ANNULUS_SELECTION_SELECTOR_H_

// A selection made ready on a device: its kernels are loaded, its bits are uploaded. A run puts the
// kernels that choose and list blocks on a stream and returns the addresses of the lists.

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
  const unsigned* forced;  // as CandidateParams::visible
};

// The kernels that a selector of such a plan gets, besides that of the attention.
std::vector<jit::KernelSpec> kernels_of(const SelectionPlan& plan, jit::Arch arch);

// Immutable; any number of threads may run it at a time, each with a workspace of its own.
class Selector {
 public:
  // Gets the kernels, which may compile them, and waits for the uploads.
  Selector(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
           SelectionPlan plan);

  const SelectionPlan& plan() const { return plan_; }
  std::int64_t device_bytes() const {
    return static_cast<std::int64_t>(bits_.bytes() + coarse_bits_.bytes() + head_list_.bytes());
  }

  // Launches the kernels: no allocation of its own, no lock, no waiting. `base` are the lists of
  // the attention's own plan. Launches that are queued afterwards may read the lists that are
  // returned. Throws Error{kInvalidArgument} for buffers that the selection does not go with,
  // before anything is queued, and Error{kDevice}.
  kernels::TileListParams put(device::LaunchSink& to, const Operands& operands,
                              const SelectionBuffers& buffers, void* workspace,
                              const kernels::TileListParams& base) const;

  // Parts of a run for the tracker, which does the rest itself: scores of all blocks; bits of the
  // blocks that the caller gave; and those bits as indices in buffers.chosen. Require: at most
  // 65535 batches, no coarse pass, rules and pools that have such a part.
  Scored score_only(abi::CUstream stream, const Operands& operands, void* workspace) const;
  unsigned* mark_only(abi::CUstream stream, const SelectionBuffers& buffers, void* workspace) const;
  void write_chosen(abi::CUstream stream, const SelectionBuffers& buffers, void* workspace) const;

 private:
  // A range of batches of one run, as many as one launch takes.
  struct Call;

  // A kernel by its name, which is also that of its file, where it goes, and whether a selection
  // launches it.
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
  device::Buffer bits_, coarse_bits_;  // for each pass its visible bits, then its forced bits
  device::Buffer head_list_;           // 0, 1, 2, ...: each head has its own list
};

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_SELECTOR_H_
