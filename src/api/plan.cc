// The functions of a plan's public handle. Each has a few lines that call src/planner.
#include <cmath>

#include "annulus/device.h"
#include "api/impl.h"
#include "base/fail.h"
#include "planner/describe.h"

namespace annulus {
namespace api {

planner::Planner planner_of(const Device::Impl& device) {
  return {.device = device.info.name,
          .limits = limits_of(device),
          .context = device.context,
          .kernels = device.kernels,
          .tuned = device.tuned,
          .tiles = device.tiles,
          .device_tiles = device.device_tiles,
          .log = device.log,
          .check_operands = device.check_operands,
          .own_templates = device.own_templates,
          .background = device.background,
          .late_jobs = device.late_jobs->under_way(),
          .noted = device.noted};
}

namespace {

// `add` counts the problem, and returns whether a line can describe it.
template <typename Add>
void count_plan(const Device::Impl& device, const Add& add) {
  if (!device.counts_shapes.load(std::memory_order_relaxed)) return;
  const bool has_line = add(*device.shape_counts);
  if (!device.shape_log) return;
  device.context->tally().add(base::Count::shape_log_plans);
  if (!has_line) device.context->tally().add(base::Count::shape_log_left_out);
}

}  // namespace

void count_shape(const Device::Impl& device, const planner::Request& request) {
  count_plan(device, [&](shape_log::ShapeCounts& counts) {
    if (request.selection == nullptr) return counts.add(request.problem, request.options);
    counts.leave_out();
    return false;
  });
}

void count_shape(const Device::Impl& device, const BatchProblem& problem,
                 const BatchOptions& options) {
  count_plan(device, [&](shape_log::ShapeCounts& counts) { return counts.add(problem, options); });
}

namespace {

// Calls prepare() for a plan of this device, or for something that a plan needs.
template <typename Prepare>
auto counted(const Device::Impl& device, const char* name, const Prepare& prepare) {
  const base::Span span(name, device.info.name);
  try {
    return prepare(planner_of(device));
  } catch (...) {
    device.context->tally().add(base::Count::plans_failed);
    throw;
  }
}

Plan plan_on(const Device::Impl& device, const planner::Request& request) {
  planner::PreparedLate made = counted(device, "plan", [&](const planner::Planner& by) {
    return request.options.wait ? planner::for_good(by.prepare(request)) : by.prepare_late(request);
  });
  const PlanInfo& info = made.first.info;
  base::Tally& tally = device.context->tally();
  tally.add(base::Count::plans);
  tally.add(base::Count::plan_micros, std::llround(info.plan_ms * 1e3));
  if (!info.tuned.empty()) tally.add(base::Count::plans_tuned);
  count_shape(device, request);
  if (planner::can_follow(request)) {
    if (!made.late) {
      made.late = std::make_shared<planner::LateKernel>(
          request.options.swap, info.general ? PlanState::kGeneral : PlanState::kReady);
    }
    device.followers->add(planner_of(device), request, info.config, made.workspace_bytes,
                          made.late);
  }
  auto plan = std::make_shared<Plan::Impl>(std::move(made), device);
  if (plan->timer) {
    plan->timed = std::make_shared<device::RunTimer::Subject>();
    plan->timed->name = plan->first.info.config;
  }
  return Plan(std::move(plan));
}

BoundCall bound(const std::shared_ptr<const Plan::Impl>& plan, const Operands& operands,
                void* workspace, const SelectionBuffers* buffers) {
  plan->process.check("plan");
  const base::Span span("bind", plan->now().info.config);
  auto call = std::make_shared<BoundCall::Impl>();
  call->plan = plan;
  plan->now().put(call->launches, operands, workspace, buffers);
  plan->context->tally().add(base::Count::binds);
  return BoundCall(std::move(call));
}

}  // namespace
}  // namespace api

inline namespace v0 {

Plan Device::plan(const Problem& problem, const PlanOptions& options) const {
  return api::plan_on(api::inside(*this), {problem, options});
}

Plan Device::plan(const Problem& problem, const Selection& selection,
                  const PlanOptions& options) const {
  return api::plan_on(api::inside(*this), {problem, options, &selection});
}

void Device::prefetch(const Problem& problem, const PlanOptions& options) const {
  const Impl& device = api::inside(*this);
  api::counted(device, "prefetch",
               [&](const planner::Planner& by) { by.prefetch(problem, options); });
  device.context->tally().add(base::Count::prefetches);
}

MemoryNeeded Device::memory_needed(const Problem& problem, const PlanOptions& options) const {
  return api::planner_of(*impl_).memory_needed(problem, options);
}

const Problem& Plan::problem() const { return impl_->first.forward.problem(); }
const PlanInfo& Plan::info() const { return impl_->now().info; }

PlanState Plan::state() const {
  if (impl_->late) return impl_->late->state();
  return impl_->first.info.general ? PlanState::kGeneral : PlanState::kReady;
}

std::string Plan::why_general() const { return impl_->late ? impl_->late->problem() : ""; }

bool Plan::wait(double seconds) const {
  impl_->process.check("plan");
  if (std::isnan(seconds)) {
    base::fail(ErrorCode::kInvalidArgument,
               "a wait of NaN seconds; give a number, or a negative one for no end");
  }
  return impl_->late == nullptr || impl_->late->wait(seconds);
}

void Plan::swap() const {
  impl_->process.check("plan");
  if (impl_->late) impl_->late->swap();
}

bool Plan::can_swap() const { return impl_->late != nullptr && impl_->late->can_swap(); }

PlanPrediction Plan::predict() const {
  return planner::predict(planner::plans_of(impl_->now().forward), impl_->context->info());
}

std::size_t Plan::workspace_bytes() const { return impl_->workspace_bytes; }

void Plan::run(void* stream, const Operands& operands, void* workspace) const {
  impl_->process.check("plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->run(static_cast<abi::CUstream>(stream),
             [&] { impl_->now().put(to, operands, workspace, nullptr); });
}

void Plan::run(void* stream, const Operands& operands, void* workspace,
               const SelectionBuffers& buffers) const {
  impl_->process.check("plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->run(static_cast<abi::CUstream>(stream),
             [&] { impl_->now().put(to, operands, workspace, &buffers); });
}

BoundCall Plan::bind(const Operands& operands, void* workspace) const {
  return api::bound(impl_, operands, workspace, nullptr);
}

BoundCall Plan::bind(const Operands& operands, void* workspace,
                     const SelectionBuffers& buffers) const {
  return api::bound(impl_, operands, workspace, &buffers);
}

void BoundCall::run(void* stream) const {
  impl_->process.check("bound call");
  const auto on = static_cast<abi::CUstream>(stream);
  impl_->plan->run(on, [&] { impl_->launches.run(on); });
}

}  // namespace v0
}  // namespace annulus
