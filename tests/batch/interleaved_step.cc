#include "batch/interleaved_step.h"

#include "annulus/merge.h"

namespace annulus::test {

InterleavedStep::InterleavedStep(const Device& device, const BatchProblem& problem,
                                 const BatchOptions& options, const std::vector<Request>& requests,
                                 const Placing& placing)
    : device_(device), problem_(problem), requests_(requests) {
  for (std::int64_t rank = 0; rank < problem.interleave.ranks; ++rank) {
    BatchProblem of_rank = problem;
    of_rank.interleave.rank = rank;
    plans_.push_back(plan_batch(device_, of_rank, options));
    // Each rank has other places of pages. The order of LSE depends on the parity of the seed, and
    // stays the same.
    Placing other = placing;
    other.seed += 2 * static_cast<std::uint64_t>(rank);
    steps_.push_back(std::make_unique<BatchCase>(device_, plans_.back(), requests, other));
    if (placing.nan) lose_unseen_pages(*steps_.back(), of_rank, requests);
    steps_.back()->run();
  }
}

std::vector<Answer> InterleavedStep::of_rank(int rank) const {
  return steps_[static_cast<std::size_t>(rank)]->answers();
}

std::string InterleavedStep::first_wrong() {
  const BatchOperands& first = steps_.front()->operands();
  if (steps_.size() > 1) {
    const MergePlan plan = plan_merge(device_, {.heads = problem_.heads,
                                                .dim_v = problem_.dim_v,
                                                .dtype = problem_.dtype,
                                                .lse_base = problem_.lse_base,
                                                .inputs = problem_.interleave.ranks,
                                                .max_rows = problem_.most.rows});
    std::vector<MergeInput> inputs;
    for (const auto& step : steps_) inputs.push_back({step->operands().o, step->operands().lse});
    // The merged answer overwrites the answer of rank 0, from where the step reads its answers.
    MergeOperands operands;
    operands.inputs = inputs;
    operands.input_o_strides = operands.o_strides = first.o_strides;
    operands.input_lse_strides = operands.lse_strides = first.lse_strides;
    operands.o = first.o;
    operands.lse = first.lse;
    plan.run(nullptr, operands);
  }
  bool untouched = true;
  const std::vector<Answer> answers = steps_.front()->BatchStep::answers(&untouched);
  if (!untouched) return "a row of nobody was written";
  return test::first_wrong(problem_, requests_, answers);
}

BatchRule InterleavedStep::broken_rule() const {
  for (std::size_t rank = 0; rank < steps_.size(); ++rank) {
    const BatchRule rule = plans_[rank].status(steps_[rank]->workspace()).rule;
    if (rule != BatchRule::kNone) return rule;
  }
  return BatchRule::kNone;
}

}  // namespace annulus::test
