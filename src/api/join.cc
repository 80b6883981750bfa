// The functions of the public handle of a join plan, each a few lines that call src/join.
#include "annulus/join.h"

#include "api/communicator_impl.h"
#include "api/impl.h"
#include "base/fail.h"
#include "join/joiner.h"
#include "planner/millis.h"

namespace annulus::inline v0 {

struct JoinPlan::Impl {
  join::Joiner joiner;
  Communicator communicator;
  JoinInfo info;
  device::ContextPointer context;  // which the kernels need
  base::ProcessMark process{};
};

JoinPlan plan_join(const Device& device, const Communicator& communicator,
                   const JoinProblem& problem) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan a join", inside.info.name);
  validate(problem);
  const std::shared_ptr<exchange::Rank> of = api::inside(communicator);
  if (of->context()->handle() != inside.context->handle()) {
    base::fail(ErrorCode::kInvalidArgument, "the communicator is of {} and the join is asked of {}",
               of->context()->info().name, inside.context->info().name);
  }
  const int ranks = communicator.ranks(), rank = communicator.rank();
  if (ranks > kMostMergeInputs) {
    base::fail(ErrorCode::kUnsupported,
               "a join over {} ranks; {} are merged in one launch, and more have no kernel", ranks,
               kMostMergeInputs);
  }
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

}  // namespace annulus::inline v0
