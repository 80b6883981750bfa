#include "planner/tuned_batch.h"

#include <algorithm>

#include "batch/batch_choice.h"
#include "planner/choices.h"
#include "tuned/batch_key.h"

namespace annulus::planner {

std::vector<TunedClass> tuned_classes(const BatchProblem& problem, const BatchOptions& options,
                                      const attention::DeviceLimits& limits,
                                      tuned::TunedStore& tuned) {
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  const auto named = batch::named_configs(options.config, dims);
  std::vector<TunedClass> classes;
  for (const batch::RequestClass requests : tuned::classes_within(problem)) {
    TunedClass of{requests, tuned.find(tuned::shape_key(problem, requests)), {}};
    if (std::ranges::any_of(named, [&](const attention::KernelConfig& config) {
          return batch::kernel_of(config).requests == requests;
        })) {
      of.why_unused = "the caller names a configuration";
    } else if (of.found) {
      const attention::KernelConfig& config = of.found->entry.config;
      auto why = batch::why_not(config, problem);
      if (!why) why = batch::why_not(config, dims, limits);
      of.why_unused = why.value_or("");
    }
    classes.push_back(std::move(of));
  }
  return classes;
}

TunedBatch tuned_batch(const BatchProblem& problem, const BatchOptions& options,
                       const attention::DeviceLimits& limits, tuned::TunedStore& tuned) {
  TunedBatch made{options, {}, {}};
  if (tuned.empty()) return made;
  const auto append = [](std::string* to, const std::string& text) {
    if (!to->empty()) *to += ", ";
    *to += text;
  };
  for (TunedClass& of : tuned_classes(problem, options, limits, tuned)) {
    if (!of.found || !of.why_unused.empty()) continue;
    append(&made.options.config, attention::to_string(of.found->entry.config));
    append(&made.origins, origin_of(*of.found));
    made.found.push_back(std::move(*of.found));
  }
  return made;
}

}  // namespace annulus::planner
