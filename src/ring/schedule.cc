#include "ring/schedule.h"

#include <fmt/core.h>

#include <algorithm>

namespace annulus::ring {
namespace {

int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

// hops[owner] is how many steps the shard of `owner` goes around the ring: to the last rank that
// needs it.
std::vector<int> count_hops(const Needs& needs) {
  const int ranks = needs.ranks();
  std::vector<int> hops(static_cast<std::size_t>(ranks), 0);
  for (int owner = 0; owner < ranks; ++owner) {
    for (int step = 1; step < ranks; ++step) {
      if (needs.at(wrap(owner + step, ranks), owner)) hops[static_cast<std::size_t>(owner)] = step;
    }
  }
  return hops;
}

// Writes the ops of one rank.
class RankWriter {
 public:
  RankWriter(const Needs& needs, const std::vector<int>& hops,
             const std::vector<std::int64_t>& shard_bytes, int rank, bool has_rows)
      : needs_(needs),
        hops_(hops),
        bytes_(shard_bytes),
        rank_(rank),
        ranks_(needs.ranks()),
        has_rows_(has_rows) {
    for (int step = 0; step < ranks_; ++step) lonely_ = lonely_ && !needs.at(rank, owner_at(step));
  }

  std::vector<Op> write() {
    if (travels(0)) ops_.push_back({.kind = Op::Kind::kPack, .owner = rank_, .buffer = 0});
    for (int step = 0; step < ranks_; ++step) {
      exchange(step);
      compute(step);
    }
    int launches = 0;
    // Which launches are the first and the last is known only when all of them are written.
    for (Op& op : ops_) {
      if (op.kind == Op::Kind::kCompute) op.first = launches++ == 0;
    }
    for (auto op = ops_.rbegin(); op != ops_.rend() && launches > 0; ++op) {
      if (op->kind != Op::Kind::kCompute) continue;
      op->last = true;
      break;
    }
    for (int op = static_cast<int>(ops_.size()) - 1; op >= 0; --op) {
      if (!ops_[static_cast<std::size_t>(op)].on_exchange_stream()) continue;
      ops_.push_back({.kind = Op::Kind::kJoin, .step = ranks_ - 1, .waits = {op}});
      break;
    }
    return std::move(ops_);
  }

 private:
  int owner_at(int step) const { return wrap(rank_ - step, ranks_); }
  // Whether the shard that this rank holds in `step` goes on to the next rank. A shard without keys
  // is never sent.
  bool travels(int step) const {
    const auto owner = static_cast<std::size_t>(owner_at(step));
    return step < hops_[owner] && bytes_[owner] > 0;
  }

  void exchange(int step) {
    Op op = {.kind = Op::Kind::kExchange, .step = step};
    if (travels(step)) {
      op.send_to = wrap(rank_ + 1, ranks_);
      op.send_owner = owner_at(step);
      op.send_buffer = step % 2;
    }
    // The shard that arrives is the one that the rank before this one holds now and this one holds
    // in the next step.
    const auto arriving = static_cast<std::size_t>(owner_at(step + 1));
    if (step + 1 < ranks_ && step < hops_[arriving] && bytes_[arriving] > 0) {
      op.receive_from = wrap(rank_ - 1, ranks_);
      op.receive_owner = static_cast<int>(arriving);
      op.receive_buffer = (step + 1) % 2;
      // The copy into the buffer waits for the last launch that read it. Sends from the buffer need
      // no wait, because they came earlier on this stream.
      if (reader_[op.receive_buffer] != kNone) op.waits = {reader_[op.receive_buffer]};
      arrived_[op.receive_buffer] = static_cast<int>(ops_.size());
    }
    if (op.send_to != kNone || op.receive_from != kNone) ops_.push_back(std::move(op));
  }

  void compute(int step) {
    const int owner = owner_at(step);
    if (!has_rows_) return;
    bool waited = false;  // later launches of the step follow the first one on the same stream
    for (int branch = 0; branch < needs_.branches(); ++branch) {
      const bool empty_answer = lonely_ && step == 0 && branch == 0;
      if (!needs_.at(rank_, owner, branch) && !empty_answer) continue;
      Op op = {.kind = Op::Kind::kCompute, .step = step, .owner = owner, .branch = branch};
      if (step > 0) {
        op.buffer = step % 2;
        if (!waited) op.waits = {arrived_[op.buffer]};
        waited = true;
        reader_[op.buffer] = static_cast<int>(ops_.size());
      }
      ops_.push_back(std::move(op));
    }
  }

  const Needs& needs_;
  const std::vector<int>& hops_;
  const std::vector<std::int64_t>& bytes_;
  const int rank_;
  const int ranks_;
  const bool has_rows_;
  bool lonely_ = true;  // no row sees a key: one launch in step 0 writes the empty answer
  std::vector<Op> ops_;
  // For each buffer the index of the last launch that read it and of the exchange that filled it.
  int reader_[2] = {kNone, kNone};
  int arrived_[2] = {kNone, kNone};
};

}  // namespace

std::int64_t Schedule::bytes_sent(int rank) const {
  std::int64_t bytes = 0;
  for (const Op& op : ops[static_cast<std::size_t>(rank)]) {
    if (op.send_to != kNone) bytes += shard_bytes[static_cast<std::size_t>(op.send_owner)];
  }
  return bytes;
}

std::int64_t Schedule::bytes_received(int rank) const {
  std::int64_t bytes = 0;
  for (const Op& op : ops[static_cast<std::size_t>(rank)]) {
    if (op.receive_from != kNone) bytes += shard_bytes[static_cast<std::size_t>(op.receive_owner)];
  }
  return bytes;
}

int Schedule::launches(int rank) const {
  const auto& of_rank = ops[static_cast<std::size_t>(rank)];
  return static_cast<int>(std::count_if(
      of_rank.begin(), of_rank.end(), [](const Op& op) { return op.kind == Op::Kind::kCompute; }));
}

std::int64_t Schedule::buffer_bytes(int rank, int buffer) const {
  std::int64_t bytes = 0;
  for (const Op& op : ops[static_cast<std::size_t>(rank)]) {
    if (op.kind == Op::Kind::kPack && op.buffer == buffer) {
      bytes = std::max(bytes, shard_bytes[static_cast<std::size_t>(op.owner)]);
    }
    if (op.receive_from != kNone && op.receive_buffer == buffer) {
      bytes = std::max(bytes, shard_bytes[static_cast<std::size_t>(op.receive_owner)]);
    }
  }
  return bytes;
}

Schedule make_schedule(const Needs& needs, const std::vector<std::int64_t>& rows_q,
                       const std::vector<std::int64_t>& shard_bytes) {
  Schedule schedule;
  schedule.ranks = needs.ranks();
  schedule.shard_bytes = shard_bytes;
  const std::vector<int> hops = count_hops(needs);
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    const bool has_rows = rows_q[static_cast<std::size_t>(rank)] > 0;
    schedule.ops.push_back(RankWriter(needs, hops, shard_bytes, rank, has_rows).write());
  }
  return schedule;
}

std::vector<std::string> describe(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (int step = 0; step < schedule.ranks; ++step) {
      std::string text;
      const auto say = [&](std::string part) {
        text += (text.empty() ? "" : "; ") + std::move(part);
      };
      for (const Op& op : schedule.ops[static_cast<std::size_t>(rank)]) {
        if (op.step != step) continue;
        if (op.kind == Op::Kind::kPack) say("pack own keys into buffer 0");
        if (op.kind == Op::Kind::kCompute) {
          say(fmt::format(
              "compute{} with keys of rank {} in {}{}",
              op.branch > 0 ? fmt::format(" branch {}", op.branch) : "", op.owner,
              op.buffer == kCallersTensors ? "place" : fmt::format("buffer {}", op.buffer),
              op.last ? ", finish" : ""));
        }
        if (op.send_to != kNone) {
          say(fmt::format("send keys of rank {} to rank {}", op.send_owner, op.send_to));
        }
        if (op.receive_from != kNone) {
          say(fmt::format("receive keys of rank {} into buffer {}", op.receive_owner,
                          op.receive_buffer));
        }
      }
      lines.push_back(
          fmt::format("rank {} step {}: {}", rank, step, text.empty() ? "nothing" : text));
    }
  }
  return lines;
}

}  // namespace annulus::ring
