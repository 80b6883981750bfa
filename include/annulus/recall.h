#ifndef ANNULUS_RECALL_H_
#define ANNULUS_RECALL_H_

// How much of the attention a sparse run saw: for each query, the share of its softmax mass over
// all pairs that the problem's pattern shows which belongs to the pairs that were attended to. It
// is exact and costs a run over all those pairs, so it is for judging a selection and not for
// serving with it.
//
//   RecallMeter meter(device, problem);
//   plan.run(stream, operands, workspace);              // of device.plan(problem, selection)
//   meter.run(stream, operands, recall, own_workspace);

#include <cstddef>
#include <memory>
#include <span>

#include "annulus/device.h"

namespace annulus::inline v0 {

// Immutable; copies share. Any number of threads may run one at the same time.
class ANNULUS_EXPORT RecallMeter {
 public:
  // `problem` is that of the runs that are judged and has want_lse. Throws Error{kInvalidArgument}
  // where it does not, and what Device::plan throws.
  RecallMeter(const Device& device, const Problem& problem, const PlanOptions& options = {});

  // Scratch memory that every concurrent run needs of its own, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Writes `recall`, fp32 [B, H, Sq]: exp(lse - LSE over all pairs), and 1 for a query that sees no
  // key. Up to rounding it is never above 1. `operands` are those of the run, whose LSEs
  // `operands.lse` holds by then; Q, K and V must be as they were in the run, which they are not
  // where O was written over Q. Asynchronous, as Plan::run. With a carried state both LSEs include
  // the state that came in.
  void run(void* stream, const Operands& operands, float* recall, void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The mean and the least recall of all queries, from host memory; both are 1 where there is no
// query.
struct RecallSummary {
  double mean = 1;
  double least = 1;
};
ANNULUS_EXPORT RecallSummary summarise_recall(std::span<const float> recall);

}  // namespace annulus::inline v0

#endif  // ANNULUS_RECALL_H_
