// The functions of the public handles of joins and gathers. Each has a few lines that call
// src/join.
#include "annulus/join.h"

#include "api/communicator_impl.h"
#include "api/impl.h"
#include "base/fail.h"
#include "jit/missing_kernel.h"
#include "join/gatherer.h"
#include "join/joiner.h"
#include "planner/millis.h"

namespace annulus::inline v0 {

struct JoinPlan::Impl {
  join::Joiner joiner;
  Communicator communicator;
  JoinInfo info;
  device::ContextPointer context;  // used by the kernels
  base::ProcessMark process{};
};

struct GatherPlan::Impl {
  join::Gatherer gatherer;
  Communicator communicator;
  device::ContextPointer context;  // used by the kernels
  base::ProcessMark process{};
};

namespace {

void check_ranks(const Device& device, const Communicator& communicator, const char* what) {
  const Device::Impl& inside = api::inside(device);
  const std::shared_ptr<exchange::Rank> of = api::inside(communicator);
  if (of->context()->handle() != inside.context->handle()) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "the communicator belongs to {} and the {} to {}; give a communicator of that device",
        of->context()->info().name, what, inside.context->info().name);
  }
  if (communicator.ranks() > kMaxMergeInputs) {
    base::fail(ErrorCode::kUnsupported, "a {} over {} ranks; there are kernels for {} at most",
               what, communicator.ranks(), kMaxMergeInputs);
  }
}

}  // namespace

JoinPlan plan_join(const Device& device, const Communicator& communicator,
                   const JoinProblem& problem) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan a join", inside.info.name);
  validate(problem);
  check_ranks(device, communicator, "join");
  const int ranks = communicator.ranks(), rank = communicator.rank();
  const jit::KernelsFor wanted([&] {
    return fmt::format("a join of up to {} rows over {} ranks, H{} D{} {}", problem.max_rows, ranks,
                       problem.heads, problem.dim_v, to_string(problem.dtype));
  });
  const planner::Clock::time_point start = planner::Clock::now();
  auto made = std::make_shared<JoinPlan::Impl>(
      JoinPlan::Impl{join::Joiner(*inside.kernels, inside.arch, problem, ranks, rank),
                     communicator,
                     {},
                     inside.context});
  const join::Layout& most = made->joiner.most();
  made->info = {.rank = rank,
                .ranks = ranks,
                .exchanges = ranks == 1     ? 0
                             : most.gathers ? 2
                                            : 1,
                .bytes_sent = ranks == 1 ? 0 : most.bytes_sent,
                .reason = join::reason_of(problem, most, ranks),
                .compile_ms = planner::millis(planner::Clock::now() - start)};
  inside.log.write(base::LogLevel::kInfo, "a join on rank {} of {}: {}", rank, ranks,
                   made->info.reason);
  return JoinPlan(std::move(made));
}

const JoinProblem& JoinPlan::problem() const { return impl_->joiner.problem(); }
const JoinInfo& JoinPlan::info() const { return impl_->info; }

std::size_t JoinPlan::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->joiner.workspace_bytes());
}

void JoinPlan::run(void* stream, const JoinOperands& operands, void* workspace) const {
  impl_->process.check("join plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->joiner.run(to, operands, workspace,
                    [&](std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) {
                      impl_->communicator.exchange(stream, sends, receives);
                    });
}

GatherPlan plan_gather(const Device& device, const Communicator& communicator,
                       const GatherProblem& problem) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan a gather", inside.info.name);
  validate(problem);
  check_ranks(device, communicator, "gather");
  const jit::KernelsFor wanted([&] {
    return fmt::format("a gather of up to {} rows over {} ranks, H{} D{} {}", problem.max_rows,
                       communicator.ranks(), problem.heads, problem.dim, to_string(problem.dtype));
  });
  return GatherPlan(std::make_shared<GatherPlan::Impl>(
      GatherPlan::Impl{join::Gatherer(*inside.kernels, inside.arch, problem, communicator.ranks(),
                                      communicator.rank()),
                       communicator, inside.context}));
}

const GatherProblem& GatherPlan::problem() const { return impl_->gatherer.problem(); }

std::size_t GatherPlan::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->gatherer.workspace_bytes());
}

void GatherPlan::run(void* stream, const GatherOperands& operands, void* workspace) const {
  impl_->process.check("gather plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->gatherer.run(
      to, operands, workspace,
      [&](std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) {
        impl_->communicator.exchange(stream, sends, receives);
      });
}

}  // namespace annulus::inline v0
