#include "planner/choices.h"

#include <algorithm>

#include "base/fail.h"
#include "selection/selection_plan.h"
#include "tuned/shape_key.h"

namespace annulus::planner {

tuned::ShapeKey key_of(const Subject& subject) {
  if (subject.selection != nullptr) {
    return tuned::shape_key(subject.problem, *subject.selection);
  }
  return tuned::shape_key(subject.step != nullptr ? *subject.step : subject.problem);
}

namespace {

std::optional<tuned::TunedStore::Found> find_tuned(const Subject& subject,
                                                   const PlanOptions& options,
                                                   tuned::TunedStore& tuned) {
  const Problem& problem = subject.problem;
  if (!options.config.empty()) return std::nullopt;
  if (problem.batch == 0 || problem.seq_q == 0 || tuned.empty()) return std::nullopt;
  auto found = tuned.find(key_of(subject));
  if (found && attention::why_not(found->entry.config, problem, options.strides)) {
    return std::nullopt;
  }
  return found;
}

// Whether a relative's result is also good on this device, according to the model. Chips that
// differ in their memory agree on most configurations, but a result that is far from the model's is
// rejected.
bool suits(const tuned::TunedStore::Found& found, const Subject& subject,
           const attention::DeviceLimits& limits, const attention::Choice& heuristic) {
  if (found.relative.empty() || found.entry.config == heuristic.config) return true;
  const auto micros = [&](const attention::KernelConfig& config) {
    return attention::predicted_micros(subject.problem, config, limits, subject.segments);
  };
  return micros(found.entry.config) <= kMaxOverHeuristic * micros(heuristic.config);
}

// How near the result's problem is, such as "of this very kind of problem".
std::string nearness(const tuned::TunedStore::Found& found) {
  std::string text =
      found.distance == 0
          ? std::string("of this very kind of problem")
          : fmt::format("of the nearest lengths, {} half powers of two away", found.distance);
  if (!found.relative.empty()) text += fmt::format(", measured on {}, a relative", found.relative);
  return text;
}

attention::Choice tuned_choice(const tuned::TunedStore::Found& found,
                               const attention::Choice& heuristic) {
  const tuned::Entry& entry = found.entry;
  attention::Choice choice;
  choice.config = entry.config;
  choice.reason = tuned_reason(found);
  choice.rejected = heuristic.rejected;
  if (heuristic.config != entry.config) {
    std::erase_if(choice.rejected, [&](const attention::Rejected& rejected) {
      return rejected.config == entry.config;
    });
    choice.rejected.insert(choice.rejected.begin(),
                           {heuristic.config, "the heuristic's choice; a tuned result goes first"});
  }
  return choice;
}

}  // namespace

attention::DeviceLimits limits_for(attention::DeviceLimits device, const PlanOptions& options) {
  if (options.max_multiprocessors < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "max_multiprocessors is {}: it must be 0, for all, or positive",
               options.max_multiprocessors);
  }
  if (options.kv_splits < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "kv_splits is {}: it must be 0, for the choice of the model, 1, for no split, or "
               "the parts of the longest row",
               options.kv_splits);
  }
  if (options.max_workspace_bytes < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "max_workspace_bytes is {}: it must be 0, for no limit, or positive",
               options.max_workspace_bytes);
  }
  if (options.max_multiprocessors > 0) {
    device.multiprocessors = std::min(device.multiprocessors, options.max_multiprocessors);
  }
  return device;
}

attention::Choice untuned(const Subject& subject, const attention::DeviceLimits& limits,
                          const PlanOptions& options) {
  // Only here is the text of a configuration parsed. The rest of the code uses a KernelConfig.
  if (!options.config.empty()) {
    return attention::forced_config(subject.problem, limits, options.config, options.strides);
  }
  if (subject.selection != nullptr) {
    return selection::choose_config(subject.problem, *subject.selection, limits, options.strides);
  }
  return attention::choose_config(subject.problem, limits, options.strides, subject.segments);
}

Choices choose(const Subject& subject, const attention::DeviceLimits& limits,
               const PlanOptions& options, tuned::TunedStore& tuned) {
  Choices choices{untuned(subject, limits, options), std::nullopt};
  auto found = find_tuned(subject, options, tuned);
  if (!found) return choices;
  if (suits(*found, subject, limits, choices.untuned)) {
    attention::Choice choice = tuned_choice(*found, choices.untuned);
    choices.tuned = TunedChoice{std::move(choice), std::move(*found)};
  } else {
    choices.untuned.reason += fmt::format(
        "; not what {} was tuned to, {}, which the model predicts to take more than {} of it",
        found->relative, attention::to_string(found->entry.config), kMaxOverHeuristic);
  }
  return choices;
}

std::string tuned_reason(const tuned::TunedStore::Found& found) {
  const tuned::Entry& entry = found.entry;
  return fmt::format("tuned, {} {:.3f} of the heuristic's {} ({}); from {}",
                     entry.predicted ? "predicted" : "took",
                     static_cast<double>(entry.time) / static_cast<double>(entry.default_time),
                     entry.predicted ? "cycles" : "time", nearness(found), origin_of(found));
}

std::string origin_of(const tuned::TunedStore::Found& found) {
  return found.path.empty() ? "memory" : found.path;
}

void give_up(const tuned::TunedStore::Found& found, const Error& error, tuned::TunedStore& tuned,
             const base::Log& log) {
  // Errors of compiling, loading and suitability, and of kernels that are not compiled ahead,
  // depend on the configuration. Errors of memory, files and arguments do not.
  const bool another_may_do =
      error.code() == ErrorCode::kCompile || error.code() == ErrorCode::kDevice ||
      error.code() == ErrorCode::kLibrary || error.code() == ErrorCode::kUnsupported;
  if (!another_may_do) throw error;
  const std::string why = error.what();
  log.write(base::LogLevel::kWarning,
            "the tuned result '{}' is not used, its kernel {} does not work here: {}", found.path,
            attention::to_string(found.entry.config), why.substr(0, why.find('\n')));
  tuned.forget(found);
}

}  // namespace annulus::planner
