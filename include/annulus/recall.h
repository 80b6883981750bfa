#ifndef ANNULUS_RECALL_H_
#define ANNULUS_RECALL_H_

// How much of the attention a sparse run saw: for each query the share of its softmax mass, over
// all pairs that the problem's pattern shows, which lies in the pairs that were attended to. Exact,
// and costs a run over all those pairs: for judging a selection, not for serving with it.
//
//   RecallMeter meter(device, problem);
//   plan.run(stream, operands, workspace);              // of device.plan(problem, selection)
//   meter.run(stream, operands, recall, own_workspace);

#include <cstddef>
#include <memory>
#include <span>

#include "annulus/device.h"

namespace annulus::inline v0 {

// Immutable; any number of threads may run one at a time. Copies share.
class ANNULUS_EXPORT RecallMeter {
 public:
  // `problem` is that of the runs that are judged; it asks for LSEs. Throws
  // Error{kInvalidArgument} where it does not, and what Device::plan throws.
  RecallMeter(const Device& device, const Problem& problem, const PlanOptions& options = {});

  // Scratch memory that every concurrent run needs of its own, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Writes `recall`, fp32 [B, H, Sq]: e to (lse - LSE over all pairs), 1 for a query that sees no
  // key, up to rounding never above 1. `operands` are those of the run, whose LSEs `operands.lse`
  // holds by then; Q, K and V as they were (not where O was written over Q). Asynchronous, as
  // Plan::run. With a carried state both LSEs count what came in.
  void run(void* stream, const Operands& operands, float* recall, void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Over all queries, in host memory; 1 of none.
struct RecallSummary {
  double mean = 1;
  double least = 1;
};
ANNULUS_EXPORT RecallSummary summarise_recall(std::span<const float> recall);

}  // namespace annulus::inline v0

#endif  // ANNULUS_RECALL_H_
