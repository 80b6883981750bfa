#include "ring/local_ring.h"

#include <cstdint>

#include "attention/kernels/launch.h"
#include "attention/run/check_memory.h"
#include "base/fail.h"
#include "base/span.h"
#include "device/buffer.h"
#include "ring/pack.h"
#include "ring/rank_error.h"
#include "ring/turn.h"

namespace annulus::ring {
namespace {

constexpr std::uintptr_t kWorkspaceAlignment = 256;

abi::CUdeviceptr address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

// Makes everything that a run needs, so that run() allocates nothing: kernels, lists, streams, an
// event for each op that another op waits for, and for each step the ops of all ranks.
LocalRing::LocalRing(PlannedRing plan, std::span<const RankDevice> devices)
    : plan_(std::move(plan)) {
  const Schedule& schedule = plan_.schedule;
  steps_.assign(static_cast<std::size_t>(schedule.ranks),
                std::vector<Step>(static_cast<std::size_t>(schedule.ranks)));
  for (int number = 0; number < schedule.ranks; ++number) {
    const RankDevice& own = devices[static_cast<std::size_t>(number)];
    ranks_.push_back(of_rank(number, [&] { return make_rank(number, own); }));
  }
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const Op& op : schedule.ops[static_cast<std::size_t>(rank)]) {
      require_match(rank, op);
      if (op.receive_from == kNone) continue;
      // Copies work without peer access, but then go through the host.
      const auto& from = ranks_[static_cast<std::size_t>(op.receive_from)].context;
      of_rank(rank, [&] {
        device::enable_peer_access(*ranks_[static_cast<std::size_t>(rank)].context, *from);
      });
    }
  }
}

// Takes the launches of a rank out of the plan, and enters its ops into the steps.
LocalRing::Rank LocalRing::make_rank(int number, const RankDevice& own) {
  const auto at = static_cast<std::size_t>(number);
  const Schedule& schedule = plan_.schedule;
  Rank rank;
  rank.context = own.context;
  rank.check_operands = own.check_operands;
  rank.sent_bytes = schedule.bytes_sent(number);
  // Each Forward fetches its kernel, which can fail, before it allocates memory for its lists.
  for (attention::LaunchPlan& launch : plan_.ranks[at].launches) {
    rank.launches.emplace_back(rank.context, *own.kernels, std::move(launch));
  }
  plan_.ranks[at].launches.clear();
  const std::vector<Op>& ops = schedule.ops[at];
  rank.ended.resize(ops.size());
  int launches = 0;
  bool exchanges = false;
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = ops[static_cast<std::size_t>(index)];
    Step& step = steps_[static_cast<std::size_t>(op.step)][at];
    // A rank has at most one exchange in a step (schedule.h).
    if (op.kind == Op::Kind::kExchange) step.exchange = index;
    if (op.kind == Op::Kind::kCompute) {
      if (step.computes.empty()) step.launch = launches;
      step.computes.push_back(index);
      ++launches;
    }
    if (op.kind == Op::Kind::kPack) {
      rank.pack = own.kernels->get(pack_spec(own.arch)).kernel;
    }
    exchanges = exchanges || op.on_exchange_stream();
    for (const int wait : op.waits) {
      device::Event& event = rank.ended[static_cast<std::size_t>(wait)];
      if (event.handle() == nullptr) event = device::Event(rank.context);
    }
  }
  if (exchanges) {
    rank.exchange = device::Stream(rank.context);
    rank.start = device::Event(rank.context);
    rank.ready = device::Event(rank.context);
    rank.received = device::Event(rank.context);
  }
  return rank;
}

// An exchange without its other half would have nothing to copy or nothing to wait for.
void LocalRing::require_match(int rank, const Op& op) const {
  const auto exchange_of = [&](int peer) -> const Op* {
    const auto& steps = steps_[static_cast<std::size_t>(op.step)];
    const int index = steps[static_cast<std::size_t>(peer)].exchange;
    return index == kNone ? nullptr : &this->op(peer, index);
  };
  const Op* const receiver = op.send_to == kNone ? nullptr : exchange_of(op.send_to);
  const Op* const sender = op.receive_from == kNone ? nullptr : exchange_of(op.receive_from);
  if ((op.send_to != kNone && (receiver == nullptr || receiver->receive_from != rank)) ||
      (op.receive_from != kNone && (sender == nullptr || sender->send_to != rank))) {
    base::fail(ErrorCode::kInternal, "the exchange of rank {} in step {} has no other half", rank,
               op.step);
  }
}

const attention::Forward* LocalRing::first_launch(int rank) const {
  const auto& launches = ranks_[static_cast<std::size_t>(rank)].launches;
  return launches.empty() ? nullptr : &launches.front();
}

void LocalRing::check(std::span<const RingCall> calls) const {
  if (calls.size() != ranks_.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} calls for a ring of {} ranks; give one for each",
               calls.size(), ranks_.size());
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const RingCall& call = calls[rank];
    const RankPlan& plan = plan_.ranks[rank];
    of_rank(static_cast<int>(rank), [&] {
      validate(plan.problem, call.operands);
      // Here, before any rank has begun, although a launch checks them again.
      const auto& launches = ranks_[rank].launches;
      if (!launches.empty()) {
        check_strides(launches.front().plan().config, plan.problem, call.operands);
      }
      if (ranks_[rank].check_operands) {
        attention::check_memory(*ranks_[rank].context, call.operands, call.workspace);
      }
    });
    const auto workspace = reinterpret_cast<std::uintptr_t>(call.workspace);
    if (plan.workspace.bytes > 0 && (workspace == 0 || workspace % kWorkspaceAlignment != 0)) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the workspace of rank {} at {:#x} must be {} bytes at a multiple of {}", rank,
                 workspace, plan.workspace.bytes, kWorkspaceAlignment);
    }
  }
  // Ranks that shared a workspace would overwrite one another without an error. Device addresses
  // are unique in a process, so comparing them is enough.
  const auto begin = [&](std::size_t rank) {
    return reinterpret_cast<std::uintptr_t>(calls[rank].workspace);
  };
  const auto end = [&](std::size_t rank) {
    return begin(rank) + static_cast<std::uintptr_t>(plan_.ranks[rank].workspace.bytes);
  };
  for (std::size_t a = 0; a < calls.size(); ++a) {
    for (std::size_t b = a + 1; b < calls.size(); ++b) {
      if (begin(a) >= end(b) || begin(b) >= end(a)) continue;
      base::fail(ErrorCode::kInvalidArgument,
                 "the workspaces of rank {} and rank {} overlap; give each rank one of its own", a,
                 b);
    }
  }
}

abi::CUstream LocalRing::stream_of(const RingCall& call, int rank, const Op& op) const {
  return op.on_exchange_stream() ? ranks_[static_cast<std::size_t>(rank)].exchange.handle()
                                 : static_cast<abi::CUstream>(call.stream);
}

void LocalRing::wait_for(const RingCall& call, int rank, const Op& op) const {
  const Rank& at = ranks_[static_cast<std::size_t>(rank)];
  for (const int wait : op.waits) {
    device::wait(*at.context, stream_of(call, rank, op), at.ended[static_cast<std::size_t>(wait)]);
  }
}

void LocalRing::ended(const RingCall& call, int rank, int index) const {
  const device::Event& event =
      ranks_[static_cast<std::size_t>(rank)].ended[static_cast<std::size_t>(index)];
  if (event.handle() != nullptr) event.record(stream_of(call, rank, op(rank, index)));
}

std::byte* LocalRing::buffer(const RingCall& call, int rank, int buffer) const {
  return static_cast<std::byte*>(call.workspace) +
         plan_.ranks[static_cast<std::size_t>(rank)].workspace.buffer[buffer];
}

// The exchange stream waits for the work that is on the caller's stream already, and then packs the
// rank's own keys.
void LocalRing::begin(const RingCall& call, int rank) const {
  const Rank& at = ranks_[static_cast<std::size_t>(rank)];
  if (at.exchange.handle() == nullptr) return;
  at.start.record(static_cast<abi::CUstream>(call.stream));
  device::wait(*at.context, at.exchange.handle(), at.start);
  const auto& ops = plan_.schedule.ops[static_cast<std::size_t>(rank)];
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = ops[static_cast<std::size_t>(index)];
    if (op.kind != Op::Kind::kPack) continue;
    pack(at.pack->function, plan_.ranks[static_cast<std::size_t>(rank)].problem, call.operands,
         plan_.packed[static_cast<std::size_t>(rank)], buffer(call, rank, op.buffer),
         at.exchange.handle());
    ended(call, rank, index);
  }
}

void LocalRing::exchange(std::span<const RingCall> calls, std::size_t step) const {
  const std::vector<Step>& steps = steps_[step];
  const auto each = [&](auto f) {
    for (int rank = 0; rank < static_cast<int>(steps.size()); ++rank) {
      const int index = steps[static_cast<std::size_t>(rank)].exchange;
      if (index != kNone) of_rank(rank, [&] { f(rank, index, op(rank, index)); });
    }
  };
  const auto rank_at = [&](int rank) -> const Rank& {
    return ranks_[static_cast<std::size_t>(rank)];
  };
  // Three passes, because a wait sees only what was recorded before it was queued: all ranks record
  // `ready` before any waits for it, and all record `received` before any sender waits for that.
  // For the same reason one event of each kind serves all steps.
  each([&](int rank, int, const Op& op) {
    wait_for(calls[static_cast<std::size_t>(rank)], rank, op);
    if (op.send_to != kNone) rank_at(rank).ready.record(rank_at(rank).exchange.handle());
  });
  each([&](int rank, int, const Op& op) {
    if (op.receive_from == kNone) return;
    const Rank& to = rank_at(rank);
    const Rank& from = rank_at(op.receive_from);
    device::wait(*to.context, to.exchange.handle(), from.ready);
    const Step& sender = steps[static_cast<std::size_t>(op.receive_from)];
    const int sent = this->op(op.receive_from, sender.exchange).send_buffer;
    device::copy_peer_async(
        *to.context,
        address(buffer(calls[static_cast<std::size_t>(rank)], rank, op.receive_buffer)),
        *from.context,
        address(buffer(calls[static_cast<std::size_t>(op.receive_from)], op.receive_from, sent)),
        static_cast<std::size_t>(
            plan_.schedule.shard_bytes[static_cast<std::size_t>(op.receive_owner)]),
        to.exchange.handle());
    to.received.record(to.exchange.handle());
  });
  each([&](int rank, int index, const Op& op) {
    if (op.send_to != kNone) {
      device::wait(*rank_at(rank).context, rank_at(rank).exchange.handle(),
                   rank_at(op.send_to).received);
    }
    ended(calls[static_cast<std::size_t>(rank)], rank, index);
  });
}

void LocalRing::compute(const RingCall& call, int rank, const Step& step) const {
  int launch = step.launch;
  for (const int index : step.computes) compute(call, rank, index, launch++);
}

void LocalRing::compute(const RingCall& call, int rank, int index, int launch) const {
  const Op& op = this->op(rank, index);
  const Rank& at = ranks_[static_cast<std::size_t>(rank)];
  const Workspace& workspace = plan_.ranks[static_cast<std::size_t>(rank)].workspace;
  wait_for(call, rank, op);
  Operands operands = call.operands;
  if (op.buffer != kCallersTensors) {
    const PackedShard& shard = plan_.packed[static_cast<std::size_t>(op.owner)];
    const std::byte* const from = buffer(call, rank, op.buffer);
    operands.k = from;
    operands.v = from + shard.value_offset;
    operands.k_strides = shard.k_strides;
    operands.v_strides = shard.v_strides;
  }
  auto* const base = static_cast<std::byte*>(call.workspace);
  const auto part = [&](std::int64_t offset) { return reinterpret_cast<float*>(base + offset); };
  // The first launch reads no state and the last one writes none; between them the state goes
  // through the workspace.
  if (!op.first || !op.last) {
    const StatePointers state = {part(workspace.acc), part(workspace.m), part(workspace.l)};
    if (!op.first) operands.state_in = state;
    if (!op.last) {
      operands.state_out = state;
      operands.o = nullptr;
      operands.lse = nullptr;
    }
  }
  void* const own = workspace.launch == Workspace::kAbsent ? nullptr : base + workspace.launch;
  at.launches[static_cast<std::size_t>(launch)].run(static_cast<abi::CUstream>(call.stream),
                                                    operands, own);
  ended(call, rank, index);
}

// The caller's stream waits for the last exchange of the rank.
void LocalRing::end(const RingCall& call, int rank) const {
  for (const Op& op : plan_.schedule.ops[static_cast<std::size_t>(rank)]) {
    if (op.kind == Op::Kind::kJoin) wait_for(call, rank, op);
  }
}

// Work is queued step by step for all ranks, exchanges before launches, so that the copy of step s
// runs beside the launches of step s.
void LocalRing::run(std::span<const RingCall> calls) const {
  const base::Span span("ring run");
  try {
    queue(calls);
  } catch (...) {
    for (const Rank& rank : ranks_) rank.context->tally().add(base::Count::ring_runs_failed);
    throw;
  }
  for (const Rank& rank : ranks_) {
    rank.context->tally().add(base::Count::ring_runs);
    rank.context->tally().add(base::Count::ring_sent_bytes, rank.sent_bytes);
  }
}

void LocalRing::queue(std::span<const RingCall> calls) const {
  check(calls);
  const Turn turn(&busy_);
  const int ranks = plan_.schedule.ranks;
  const auto call = [&](int rank) -> const RingCall& {
    return calls[static_cast<std::size_t>(rank)];
  };
  for (int rank = 0; rank < ranks; ++rank) of_rank(rank, [&] { begin(call(rank), rank); });
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    exchange(calls, step);
    for (int rank = 0; rank < ranks; ++rank) {
      of_rank(rank,
              [&] { compute(call(rank), rank, steps_[step][static_cast<std::size_t>(rank)]); });
    }
  }
  for (int rank = 0; rank < ranks; ++rank) of_rank(rank, [&] { end(call(rank), rank); });
}

}  // namespace annulus::ring
