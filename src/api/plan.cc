// The functions of the public handle of a plan, each a few lines that call src/planner.
#include "annulus/device.h"
#include "api/impl.h"
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
          .check_operands = device.check_operands};
}

namespace {

Plan made(planner::Prepared prepared) {
  return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{std::move(prepared)}));
}

BoundCall bound(const std::shared_ptr<const Plan::Impl>& plan, const Operands& operands,
                void* workspace, const SelectionBuffers* buffers) {
  plan->process.check("plan");
  auto call = std::make_shared<BoundCall::Impl>();
  call->plan = plan;
  plan->prepared.put(call->launches, operands, workspace, buffers);
  return BoundCall(std::move(call));
}

}  // namespace
}  // namespace api

inline namespace v0 {

Plan Device::plan(const Problem& problem, const PlanOptions& options) const {
  return api::made(api::planner_of(api::inside(*this)).prepare({problem, options}));
}

Plan Device::plan(const Problem& problem, const Selection& selection,
                  const PlanOptions& options) const {
  return api::made(api::planner_of(api::inside(*this)).prepare({problem, options, &selection}));
}

void Device::prefetch(const Problem& problem, const PlanOptions& options) const {
  api::planner_of(api::inside(*this)).prefetch(problem, options);
}

MemoryNeeded Device::memory_needed(const Problem& problem, const PlanOptions& options) const {
  return api::planner_of(*impl_).memory_needed(problem, options);
}

const Problem& Plan::problem() const { return impl_->prepared.forward.problem(); }
const PlanInfo& Plan::info() const { return impl_->prepared.info; }
PlanPrediction Plan::predict() const { return planner::predict(impl_->prepared.forward); }
std::size_t Plan::workspace_bytes() const { return impl_->prepared.workspace_bytes(); }

void Plan::run(void* stream, const Operands& operands, void* workspace) const {
  impl_->process.check("plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->prepared.put(to, operands, workspace, nullptr);
}

void Plan::run(void* stream, const Operands& operands, void* workspace,
               const SelectionBuffers& buffers) const {
  impl_->process.check("plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->prepared.put(to, operands, workspace, &buffers);
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
  impl_->launches.run(static_cast<abi::CUstream>(stream));
}

}  // namespace v0
}  // namespace annulus
