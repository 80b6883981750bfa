// The functions of a batch plan's public handle. Each has a few lines that call src/batch.
#include "annulus/batch.h"

#include "api/impl.h"
#include "base/fail.h"
#include "base/work.h"
#include "batch/batch_runner.h"
#include "device/stream.h"
#include "jit/missing_kernel.h"
#include "planner/choices.h"
#include "planner/millis.h"
#include "planner/tuned_batch.h"
#include "shape_log/shape_line.h"

namespace annulus::inline v0 {

struct BatchPlan::Impl {
  batch::BatchRunner runner;
  BatchInfo info;
  bool check_status = false;
  base::ProcessMark process{};
};

namespace {

BatchInfo describe(const batch::BatchRunner& runner) {
  const batch::BatchPlanData& plan = runner.plan();
  const attention::Dims dims{plan.problem.dim_qk, plan.problem.dim_v};
  const device::FunctionAttributes attributes = runner.kernel().function.attributes();
  const batch::ClassPlan& few = plan.classes.front();
  const auto each = [&](const auto& number) {
    int sum = 0;
    for (const batch::ClassPlan& of : plan.classes) sum += number(of);
    return sum;
  };
  std::string configs;
  for (const batch::ClassPlan& of : plan.classes) {
    configs += fmt::format("{}{}", configs.empty() ? "" : ", ", attention::to_string(of.config));
  }
  return {.config = std::move(configs),
          .tuned = {},
          .decisions = plan.decisions,
          .specialised_source = jit::source_text(few.spec),
          .part_keys = few.part_keys,
          .ctas = few.ctas,
          .launches = each([](const batch::ClassPlan& of) { return of.joins ? 2 : 1; }),
          .threads = attention::threads(few.config),
          .shared_bytes = attention::shared_bytes(few.config, dims),
          .registers = attributes.registers,
          .local_bytes = attributes.local_bytes,
          .bytes_under_way = batch::bytes_under_way(few.config, dims),
          .device_bytes = runner.device_bytes()};
}

// Calls make() with the tuned configurations, and again without them if that fails. Returns the
// result, and the origin of the configurations.
template <typename Make>
auto make_tuned(const planner::TunedBatch& tuned, const BatchOptions& untuned,
                const Device::Impl& device, const Make& make) {
  if (!tuned.found.empty()) {
    try {
      return std::pair(make(tuned.options), tuned.origins);
    } catch (const Error& error) {
      // Tuned configurations may need more workspace than there is, and are still valid.
      const bool lacks_room =
          error.code() == ErrorCode::kOutOfMemory && untuned.max_workspace_bytes > 0;
      for (const tuned::TunedStore::Found& found : tuned.found) {
        if (!lacks_room) planner::give_up(found, error, *device.tuned, device.log);
      }
    }
  }
  return std::pair(make(untuned), std::string());
}

}  // namespace

BatchPlan plan_batch(const Device& device, const BatchProblem& problem,
                     const BatchOptions& options) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan a batch", inside.info.name);
  validate(problem);
  const jit::KernelsFor wanted([&] { return shape_log::wanted_by(problem, options); });
  const base::Work work(WorkLimit{}, "planning a batch");
  const planner::Clock::time_point start = planner::Clock::now();
  planner::Clock::time_point planned;
  const auto make = [&](const BatchOptions& with) {
    batch::BatchPlanData plan = batch::make_plan(problem, with, api::limits_of(inside));
    planned = planner::Clock::now();
    return std::make_shared<BatchPlan::Impl>(
        BatchPlan::Impl{batch::BatchRunner(inside.context, *inside.kernels, std::move(plan)),
                        {},
                        options.check_status});
  };
  const auto [made, origins] =
      make_tuned(planner::tuned_batch(problem, options, api::limits_of(inside), *inside.tuned),
                 options, inside, make);
  const planner::Clock::time_point ready = planner::Clock::now();
  made->info = describe(made->runner);
  made->info.tuned = origins;
  made->info.plan_ms = planner::millis(planned - start);
  made->info.compile_ms = planner::millis(ready - planned);
  inside.log.write(base::LogLevel::kInfo, "{} for {}: a batch of up to {} requests ({:.1f} ms)",
                   made->info.config, inside.info.name, problem.most.requests,
                   made->info.compile_ms);
  api::count_shape(inside, problem, options);
  return BatchPlan(made);
}

const BatchProblem& BatchPlan::problem() const { return impl_->runner.plan().problem; }
const BatchInfo& BatchPlan::info() const { return impl_->info; }

std::size_t BatchPlan::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->runner.plan().workspace_bytes);
}

void BatchPlan::prepare(void* stream, const BatchMetadata& metadata, void* workspace) const {
  impl_->process.check("batch plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->runner.prepare(to, metadata, workspace);
}

void BatchPlan::run(void* stream, const BatchOperands& operands, void* workspace) const {
  impl_->process.check("batch plan");
  if (impl_->check_status) {
    device::synchronize(*impl_->runner.context(), static_cast<abi::CUstream>(stream));
    const BatchStatus found = status(workspace);
    if (found.rule != BatchRule::kNone) {
      base::fail(ErrorCode::kInvalidArgument, "request {} of the step has {}", found.request,
                 to_string(found.rule));
    }
  }
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->runner.run(to, operands, workspace);
}

BatchStatus BatchPlan::status(const void* workspace) const {
  impl_->process.check("batch plan");
  return impl_->runner.status(workspace);
}

}  // namespace annulus::inline v0
