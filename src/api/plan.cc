// From a problem to a plan: the configuration, tuned or chosen, its launches and their kernels.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "annulus/device.h"
#include "api/impl.h"
#include "base/fail.h"

namespace annulus {
namespace api {
namespace {

double block_density(const Problem& problem, const PlanOptions& options,
                     const attention::TileList& tiles) {
  if (options.block_rows < 0 || options.block_columns < 0 ||
      (options.block_rows == 0) != (options.block_columns == 0)) {
    base::fail(ErrorCode::kInvalidArgument,
               "blocks of {} x {} cannot be counted; give two positive sizes, or 0 and 0 for the "
               "compute tile's",
               options.block_rows, options.block_columns);
  }
  if (options.block_rows == 0) return attention::tile_density(problem, tiles).value;
  return attention::block_density(problem, options.block_rows, options.block_columns).value;
}

// What one branch adds to the whole.
void add_branch(const attention::Forward& forward, const PlanOptions& options, PlanInfo* info) {
  const attention::LaunchPlan& plan = forward.plan();
  info->decisions.insert(info->decisions.end(), plan.decisions.begin(), plan.decisions.end());
  info->specialised_source += jit::source_text(plan.spec);
  if (!plan.split.empty()) info->specialised_source += jit::source_text(plan.merge_spec);
  info->launches += static_cast<int>(plan.launches.size()) * (plan.split.empty() ? 1 : 2);
  info->full_tiles += plan.tiles->full_tiles;
  info->partial_tiles += plan.tiles->partial_tiles;
  info->block_density.value += block_density(plan.problem, options, *plan.tiles);
  info->device_bytes += plan.device_bytes;
  const auto& kernel = forward.lookup().kernel;
  if (kernel == nullptr) return;
  info->ctas += attention::launched_rows(plan) * plan.problem.heads * plan.problem.batch;
  const device::FunctionAttributes attributes = kernel->function.attributes();
  const int fit = kernel->function.blocks_per_multiprocessor(
      info->threads, static_cast<std::size_t>(info->shared_bytes));
  if (info->source == "none" || fit < info->blocks_per_multiprocessor) {
    info->blocks_per_multiprocessor = fit;
  }
  info->registers = std::max(info->registers, attributes.registers);
  info->local_bytes = std::max(info->local_bytes, attributes.local_bytes);
  // Of several kernels the one that took longest to get.
  const std::string source = jit::to_string(forward.lookup().origin);
  if (info->source == "none" || info->source == "memory" || source == "compiled") {
    info->source = source;
  }
}

PlanInfo describe(const attention::BranchedForward& forward, const PlanOptions& options) {
  const std::vector<attention::Forward>& branches = forward.branches();
  const attention::LaunchPlan& first = branches.front().plan();
  PlanInfo info;
  info.kernel = first.spec.family;
  info.config = attention::to_string(first.config);
  info.source = "none";
  info.tile_rows = first.config.tile_rows;
  info.tile_columns = first.config.tile_columns;
  info.threads = static_cast<int>(first.shape.threads);
  info.shared_bytes = first.shape.shared_bytes;
  for (const attention::Rejected& rejected : first.rejected) {
    info.rejected.push_back(
        fmt::format("{}: {}", attention::to_string(rejected.config), rejected.reason));
  }
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (branches.size() > 1) {
      info.decisions.push_back(fmt::format("branch {} of {}: {}", i + 1, branches.size(),
                                           branches[i].plan().problem.pattern.to_string()));
    }
    add_branch(branches[i], options, &info);
  }
  return info;
}

// What is left of the device for a plan.
attention::DeviceLimits limits_for(const Device::Impl& device, const PlanOptions& options) {
  if (options.most_multiprocessors < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "most_multiprocessors is {}: it must be 0, for all, or positive",
               options.most_multiprocessors);
  }
  if (options.split_rows < 0) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "split_rows is {}: it must be 0, for what the model finds, 1, for none, or the parts "
        "of the longest row",
        options.split_rows);
  }
  attention::DeviceLimits limits = limits_of(device);
  if (options.most_multiprocessors > 0) {
    limits.multiprocessors = std::min(limits.multiprocessors, options.most_multiprocessors);
  }
  return limits;
}

// A problem's plan with its kernel and its lists on the device.
struct Prepared {
  attention::BranchedForward forward;
  double compile_ms = 0;
};

Prepared prepare(const Device::Impl& device, const Problem& problem,
                 const attention::Choice& choice, const attention::DeviceLimits& limits,
                 const attention::PlanForm& form) {
  std::vector<attention::LaunchPlan> decided =
      attention::make_branch_plans(problem, choice, limits, form, device.tiles.get());
  const auto planned = std::chrono::steady_clock::now();
  attention::BranchedForward forward(device.context, *device.kernels, problem, std::move(decided),
                                     device.device_tiles.get());
  const auto ready = std::chrono::steady_clock::now();
  return {std::move(forward), std::chrono::duration<double, std::milli>(ready - planned).count()};
}

attention::Choice choose(const Problem& problem, const attention::DeviceLimits& limits,
                         const PlanOptions& options) {
  return options.config.empty()
             ? attention::choose_config(problem, limits, options.strides)
             : attention::forced_config(problem, limits, options.config, options.strides);
}

// The tuned result for a problem, where there is one.
std::optional<autotune::TunedStore::Found> find_tuned(
    const Device::Impl& device, const Problem& problem,
    const std::optional<OperandStrides>& strides) {
  if (problem.batch == 0 || problem.seq_q == 0 || device.tuned->empty()) return std::nullopt;
  if (problem.pattern.branches().size() > 1) return std::nullopt;  // results are of one pattern
  auto found = device.tuned->find(autotune::shape_key(problem));
  if (found && attention::why_not(found->entry.config, problem, strides)) return std::nullopt;
  return found;
}

// With the tuned configuration where there is one that works; *tuned says which.
std::optional<Prepared> prepare_tuned(const Device::Impl& device, const Problem& problem,
                                      const attention::Choice& heuristic,
                                      const attention::DeviceLimits& limits,
                                      const attention::PlanForm& form,
                                      const std::optional<OperandStrides>& strides,
                                      std::string* tuned) {
  const auto found = find_tuned(device, problem, strides);
  if (!found) return std::nullopt;
  const attention::Choice choice = tuned_choice(*found, heuristic);
  try {
    Prepared prepared = prepare(device, problem, choice, limits, form);
    *tuned = found->path.empty() ? "memory" : found->path;
    return prepared;
  } catch (const Error& error) {
    give_up_tuned(device, *found, error);
    return std::nullopt;
  }
}

}  // namespace

attention::Choice tuned_choice(const autotune::TunedStore::Found& found,
                               const attention::Choice& heuristic) {
  const autotune::Entry& entry = found.entry;
  attention::Choice choice;
  choice.config = entry.config;
  choice.reason =
      fmt::format("tuned, {} {:.3f} of the heuristic's {} ({}); from {}",
                  entry.predicted ? "predicted" : "took",
                  static_cast<double>(entry.time) / static_cast<double>(entry.default_time),
                  entry.predicted ? "cycles" : "time",
                  found.distance == 0
                      ? std::string("of this very kind of problem")
                      : fmt::format("of the nearest lengths, {} half octaves away", found.distance),
                  found.path.empty() ? "memory" : found.path);
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

void give_up_tuned(const Device::Impl& device, const autotune::TunedStore::Found& found,
                   const Error& error) {
  const bool another_may_do = error.code() == ErrorCode::kCompile ||
                              error.code() == ErrorCode::kDevice ||
                              error.code() == ErrorCode::kUnsupported;
  if (!another_may_do) throw error;
  const std::string why = error.what();
  device.log.write(base::LogLevel::kWarning,
                   "the tuned result '{}' is not used, its kernel {} does not work here: {}",
                   found.path, attention::to_string(found.entry.config),
                   why.substr(0, why.find('\n')));
  device.tuned->forget(found.entry.shape);
}

}  // namespace api

inline namespace v0 {

Plan Device::plan(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const auto start = std::chrono::steady_clock::now();
  const attention::DeviceLimits limits = api::limits_for(*impl_, options);
  const attention::Choice choice = api::choose(problem, limits, options);
  const attention::PlanForm form = {.split_rows = options.split_rows};
  std::string tuned;
  std::optional<api::Prepared> prepared;
  if (options.config.empty()) {
    prepared = api::prepare_tuned(*impl_, problem, choice, limits, form, options.strides, &tuned);
  }
  if (!prepared) prepared = api::prepare(*impl_, problem, choice, limits, form);
  const auto ready = std::chrono::steady_clock::now();
  PlanInfo info = api::describe(prepared->forward, options);
  info.tuned = tuned;
  info.compile_ms = prepared->compile_ms;
  // Looking for a tuned result is part of deciding.
  info.plan_ms =
      std::chrono::duration<double, std::milli>(ready - start).count() - prepared->compile_ms;
  impl_->log.write(base::LogLevel::kInfo, "{} for {}: {} ({}, {:.1f} ms)", info.config,
                   impl_->info.name, info.kernel, info.source, info.compile_ms);
  return Plan(std::make_shared<const Plan::Impl>(
      Plan::Impl{std::move(prepared->forward), std::move(info)}));
}

Plan Device::plan(const Problem& problem, const Selection& selection,
                  const PlanOptions& options) const {
  validate(problem);
  selection::validate(problem, selection);
  if (options.split_rows > 1) {
    base::fail(ErrorCode::kUnsupported,
               "split_rows is {}, but rows of a selection are not split, as their tiles are listed "
               "on the device; leave it 0",
               options.split_rows);
  }
  const auto start = std::chrono::steady_clock::now();
  const attention::DeviceLimits limits = api::limits_for(*impl_, options);
  const attention::Choice choice =
      options.config.empty()
          ? selection::choose_config(problem, selection, limits, options.strides)
          : attention::forced_config(problem, limits, options.config, options.strides);
  attention::LaunchPlan launch = selection::make_plan(problem, selection, choice, limits);
  selection::SelectionPlan selected = selection::make_selection_plan(problem, selection, launch);
  const auto planned = std::chrono::steady_clock::now();
  attention::BranchedForward forward(impl_->context, *impl_->kernels, problem, {std::move(launch)});
  selection::Selector selector(impl_->context, *impl_->kernels, impl_->arch, std::move(selected));
  const auto ready = std::chrono::steady_clock::now();
  const auto millis = [](auto duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  PlanInfo info = api::describe(forward, options);
  info.plan_ms = millis(planned - start);
  info.compile_ms = millis(ready - planned);
  info.device_bytes += selector.device_bytes();
  const std::vector<std::string>& lines = selector.plan().decisions;
  info.decisions.insert(info.decisions.end(), lines.begin(), lines.end());
  return Plan(std::make_shared<const Plan::Impl>(
      Plan::Impl{std::move(forward), std::move(info), std::move(selector)}));
}

void Device::prefetch(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const attention::DeviceLimits limits = api::limits_for(*impl_, options);
  attention::Choice choice = api::choose(problem, limits, options);
  if (const auto found = api::find_tuned(*impl_, problem, options.strides);
      found && options.config.empty()) {
    choice = api::tuned_choice(*found, choice);
  }
  for (const attention::LaunchPlan& plan : attention::make_branch_plans(
           problem, choice, limits, {.split_rows = options.split_rows}, impl_->tiles.get())) {
    if (plan.launches.empty()) continue;
    impl_->device_tiles->prefetch(plan.tiles);
    impl_->kernels->get(plan.spec);
    if (!plan.split.empty()) impl_->kernels->get(plan.merge_spec);
  }
}

}  // namespace v0
}  // namespace annulus
