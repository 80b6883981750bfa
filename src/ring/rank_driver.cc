#include "ring/rank_driver.h"

#include <algorithm>
#include <map>

#include "attention/kernels/launch.h"
#include "attention/run/check_memory.h"
#include "base/fail.h"

namespace annulus::ring {

RankDriver::RankDriver(RankPlan plan, int rounds, const RankDevice& device)
    : context_(device.context),
      plan_(std::move(plan)),
      check_operands_(device.check_operands),
      steps_(static_cast<std::size_t>(rounds) + 1) {
  add_launches(device);
  if (plan_.packed.count() > 0) {
    packer_.emplace(context_, *device.kernels, device.arch, plan_.packed);
    device_bytes_ += packer_->device_bytes();
  }
  add_ops();
  sent_bytes_ = plan_.schedule.rows_sent() * plan_.form.row_bytes;
}

// Each Forward fetches its kernel, which can fail, before it allocates memory for its lists.
void RankDriver::add_launches(const RankDevice& device) {
  attention::DeviceTileCache shared(context_, {});
  std::map<const void*, std::int64_t> held;
  for (attention::LaunchPlan& launch : plan_.launches) {
    launches_.emplace_back(context_, *device.kernels, std::move(launch), &shared);
    launches_.back().each_memory([&](const void* memory, std::int64_t bytes) {
      if (held.try_emplace(memory, bytes).second) device_bytes_ += bytes;
    });
  }
  plan_.launches.clear();
}

void RankDriver::add_ops() {
  const std::vector<Op>& ops = plan_.schedule.ops;
  ended_.resize(ops.size());
  std::size_t launches = 0, sends = 0, receives = 0;
  bool exchanges = false;
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = ops[static_cast<std::size_t>(index)];
    if (op.kind == Op::Kind::kExchange) {
      steps_[static_cast<std::size_t>(op.round)].exchange = index;
    }
    if (op.kind == Op::Kind::kCompute) {
      Step& step = steps_[static_cast<std::size_t>(op.round + 1)];
      if (step.computes.empty()) step.launch = launches;
      step.computes.push_back(index);
      ++launches;
    }
    sends = std::max(sends, op.sends.size());
    receives = std::max(receives, op.receives.size());
    exchanges = exchanges || op.on_exchange_stream();
    for (const int wait : op.waits) {
      device::Event& event = ended_[static_cast<std::size_t>(wait)];
      if (event.handle() == nullptr) event = device::Event(context_);
    }
  }
  sends_.resize(sends);
  receives_.resize(receives);
  if (!exchanges) return;
  exchange_ = device::Stream(context_, device::Stream::Priority::kHigh);
  start_ = device::Event(context_);
}

void RankDriver::check(const RingCall& call) const {
  validate(plan_.problem, call.operands);
  // Checked before any rank has begun, although a launch checks them again.
  if (!launches_.empty()) {
    check_strides(launches_.front().plan().config, plan_.problem, call.operands);
  }
  if (check_operands_) attention::check_memory(*context_, call.operands, call.workspace);
  constexpr std::uintptr_t kAlignment = 256;
  const auto workspace = reinterpret_cast<std::uintptr_t>(call.workspace);
  if (plan_.workspace.bytes > 0 && (workspace == 0 || workspace % kAlignment != 0)) {
    base::fail(ErrorCode::kInvalidArgument,
               "the workspace at {:#x} must be {} bytes at a multiple of {}", workspace,
               plan_.workspace.bytes, kAlignment);
  }
}

abi::CUstream RankDriver::stream_of(const RingCall& call, const Op& op) const {
  return op.on_exchange_stream() ? exchange_.handle() : static_cast<abi::CUstream>(call.stream);
}

void RankDriver::wait_for(const RingCall& call, const Op& op) const {
  for (const int wait : op.waits) {
    device::wait(*context_, stream_of(call, op), ended_[static_cast<std::size_t>(wait)]);
  }
}

void RankDriver::ended(abi::CUstream stream, int index) const {
  const device::Event& event = ended_[static_cast<std::size_t>(index)];
  if (event.handle() != nullptr) event.record(stream);
}

std::byte* RankDriver::place(const RingCall& call, const Transfer& transfer) const {
  const std::int64_t begin =
      transfer.slot == kOwnRows ? plan_.workspace.packed : plan_.workspace.slot[transfer.slot];
  return static_cast<std::byte*>(call.workspace) + begin + transfer.row * plan_.form.row_bytes;
}

// The exchange stream waits for the work that is already on the caller's stream. Then it packs the
// rank's own rows.
void RankDriver::begin(const RingCall& call) const {
  if (exchange_.handle() == nullptr) return;
  start_.record(static_cast<abi::CUstream>(call.stream));
  device::wait(*context_, exchange_.handle(), start_);
  for (int index = 0; index < static_cast<int>(plan_.schedule.ops.size()); ++index) {
    if (op(index).kind != Op::Kind::kPack) continue;
    packer_->run(plan_.problem, call.operands,
                 static_cast<std::byte*>(call.workspace) + plan_.workspace.packed,
                 exchange_.handle());
    ended(exchange_.handle(), index);
  }
}

void RankDriver::exchange(const RingCall& call, int round, Transport& transport) const {
  const int index = steps_[static_cast<std::size_t>(round)].exchange;
  if (index == kNone) return;
  const Op& op = this->op(index);
  wait_for(call, op);
  const auto fill = [&](const std::vector<Transfer>& transfers, std::vector<MessagePart>& parts) {
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      parts[i] = {transfers[i].peer, place(call, transfers[i]),
                  transfers[i].rows * plan_.form.row_bytes};
    }
    return std::span<const MessagePart>(parts).first(transfers.size());
  };
  transport.exchange(round, fill(op.sends, sends_), fill(op.receives, receives_),
                     exchange_.handle());
}

void RankDriver::exchanged(int round) const {
  const int index = steps_[static_cast<std::size_t>(round)].exchange;
  if (index != kNone) ended(exchange_.handle(), index);
}

void RankDriver::compute(const RingCall& call, int round) const {
  const Step& step = steps_[static_cast<std::size_t>(round + 1)];
  std::size_t next = step.launch;
  for (const int index : step.computes) launch(call, index, next++);
}

void RankDriver::launch(const RingCall& call, int index, std::size_t launch) const {
  const Op& op = this->op(index);
  const Workspace& workspace = plan_.workspace;
  auto* const base = static_cast<std::byte*>(call.workspace);
  wait_for(call, op);
  Operands operands = call.operands;
  if (op.slot != kCallersTensors) {
    const std::byte* const from = base + workspace.slot[op.slot];
    operands.k = from;
    operands.v = from + plan_.form.value_offset;
    operands.k_strides = plan_.form.k_strides;
    operands.v_strides = plan_.form.v_strides;
  }
  const auto part = [&](std::int64_t offset) { return reinterpret_cast<float*>(base + offset); };
  // The first launch reads no state and the last one writes none. Between them the state is stored
  // in the workspace.
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
  launches_[launch].run(static_cast<abi::CUstream>(call.stream), operands, own);
  ended(static_cast<abi::CUstream>(call.stream), index);
}

// The caller's stream waits for the last exchange.
void RankDriver::end(const RingCall& call) const {
  for (const Op& op : plan_.schedule.ops) {
    if (op.kind == Op::Kind::kJoin) wait_for(call, op);
  }
}

}  // namespace annulus::ring
