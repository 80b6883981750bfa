#include "ring/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/work.h"

namespace annulus::ring {
namespace {

// Writes the ops of one rank.
class RankWriter {
 public:
  RankWriter(const Needs& needs, const Rounds& rounds, int rank, bool has_rows)
      : needs_(needs), rounds_(rounds), rank_(rank), has_rows_(has_rows) {}

  RankSchedule write() {
    if (rounds_.packed[static_cast<std::size_t>(rank_)].count() > 0) {
      schedule_.ops.push_back({.kind = Op::Kind::kPack});
    }
    schedule_.slot_rows = rounds_.slot_rows[static_cast<std::size_t>(rank_)];
    const int rounds = static_cast<int>(rounds_.rounds.size());
    for (int step = 0; step <= rounds; ++step) {
      if (step < rounds) exchange(step);
      compute(step - 1);
    }
    finish();
    return std::move(schedule_);
  }

 private:
  void exchange(int round) {
    Op op = {.kind = Op::Kind::kExchange, .round = round};
    const std::vector<Message>& messages = rounds_.rounds[static_cast<std::size_t>(round)];
    base::charge(1 + std::ssize(messages) / 4);
    for (const Message& message : messages) {
      if (message.from == rank_) {
        op.sends.push_back({message.to, message.owner, message.first, message.rows,
                            message.from_slot, message.from_row});
      }
      if (message.to == rank_) {
        op.receives.push_back(
            {message.from, message.owner, message.first, message.rows, round % 2, message.to_row});
        schedule_.unseen_rows += message.rows - seen_rows(message);
      }
    }
    if (op.sends.empty() && op.receives.empty()) return;
    const auto slot = static_cast<std::size_t>(round % 2);
    // An exchange that receives waits for the last launch that read the slot. Sending from a slot
    // needs no wait, because the rows arrived earlier on the same stream.
    if (!op.receives.empty()) {
      if (reader_[slot] != kNone) op.waits = {reader_[slot]};
      arrived_[slot] = static_cast<int>(schedule_.ops.size());
    }
    schedule_.ops.push_back(std::move(op));
  }

  void compute(int round) {
    if (!has_rows_) return;
    const auto slot = static_cast<std::size_t>(round % 2);
    // later launches of a round need no wait: they follow the first one on the same stream
    bool waited = false;
    for (int branch = 0; branch < needs_.branches(); ++branch) {
      // If no row sees a key, one launch writes the empty output.
      const bool empty_answer = round == kOwnKeys && branch == 0 && needs_.of(rank_).empty();
      if (!empty_answer && !sees(round, branch)) continue;
      Op op = {.kind = Op::Kind::kCompute, .round = round, .branch = branch};
      if (round != kOwnKeys) {
        op.slot = round % 2;
        if (!waited) op.waits = {arrived_[slot]};
        waited = true;
        reader_[slot] = static_cast<int>(schedule_.ops.size());
      }
      schedule_.ops.push_back(std::move(op));
    }
  }

  // Whether the rank's rows see, through the branch, any key that arrived in the round.
  bool sees(int round, int branch) const {
    if (round == kOwnKeys) return needs_.at(rank_, rank_, branch);
    const auto& messages = rounds_.rounds[static_cast<std::size_t>(round)];
    base::charge(1 + std::ssize(messages) / 4);
    return std::ranges::any_of(messages, [&](const Message& message) {
      if (message.to != rank_) return false;
      const Need* need = needs_.find(rank_, message.owner, branch);
      if (need == nullptr) return false;
      bool touched = false;
      each_piece(message, [&](const pattern::Interval& rows) {
        touched = touched || pattern::touches(need->rows, rows);
      });
      return touched;
    });
  }

  // The number of rows of the message that the rank needs. Rows in closed gaps are not counted, as
  // far as the message has them. If a need has closed gaps, its first message counts all needed
  // rows.
  std::int64_t seen_rows(const Message& message) {
    const Need* need = needs_.find(rank_, message.owner);
    if (need == nullptr) return 0;
    std::int64_t rows = 0;
    pattern::IntervalSet common;
    each_piece(message, [&](const pattern::Interval& piece) {
      pattern::intersect(need->rows, {piece}, &common);
      rows += pattern::size(common);
    });
    if (need->unneeded > 0 &&
        std::ranges::find(gaps_counted_, message.owner) == gaps_counted_.end()) {
      gaps_counted_.push_back(message.owner);
      rows -= need->unneeded;
    }
    return rows;
  }

  template <typename F>
  void each_piece(const Message& message, F f) const {
    rounds_.packed[static_cast<std::size_t>(message.owner)].each_piece(
        {message.first, message.first + message.rows}, f);
  }

  // The first and the last launch are known only after all of them are written.
  void finish() {
    std::vector<Op>& ops = schedule_.ops;
    const auto computes = [](const Op& op) { return op.kind == Op::Kind::kCompute; };
    if (const auto first = std::ranges::find_if(ops, computes); first != ops.end()) {
      first->first = true;
      std::find_if(ops.rbegin(), ops.rend(), computes)->last = true;
    }
    for (int op = static_cast<int>(ops.size()) - 1; op >= 0; --op) {
      if (!ops[static_cast<std::size_t>(op)].on_exchange_stream()) continue;
      ops.push_back({.kind = Op::Kind::kJoin,
                     .round = static_cast<int>(rounds_.rounds.size()) - 1,
                     .waits = {op}});
      return;
    }
  }

  const Needs& needs_;
  const Rounds& rounds_;
  const int rank_;
  const bool has_rows_;
  RankSchedule schedule_;
  std::vector<int> gaps_counted_;  // the owners whose closed gaps were counted
  // For each slot: the indices of the last launch that read it and of the last exchange that filled
  // it.
  std::array<int, 2> reader_ = {kNone, kNone};
  std::array<int, 2> arrived_ = {kNone, kNone};
};

std::string owners_text(const std::vector<Transfer>& receives) {
  std::int64_t rows = 0;
  std::vector<int> owners;
  for (const Transfer& transfer : receives) {
    rows += transfer.rows;
    if (owners.empty() || owners.back() != transfer.owner) owners.push_back(transfer.owner);
  }
  std::string text = fmt::format("{} rows of rank", rows);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : ", ", owners[i]);
  }
  return text;
}

// A text of what a rank does in one step.
std::string describe_step(const RankSchedule& own, std::int64_t packed_rows, int rank, int step) {
  std::string text;
  const auto say = [&](std::string part) { text += (text.empty() ? "" : "; ") + std::move(part); };
  for (const Op& op : own.ops) {
    if (op.kind == Op::Kind::kPack && step == 0) {
      say(fmt::format("pack {} own rows", packed_rows));
    }
    if (op.kind == Op::Kind::kCompute && op.round == step - 1) {
      int index = 0;
      const Op* exchange = own.exchange_of(op.round, &index);
      say(fmt::format("compute{} with {}{}",
                      op.branch > 0 ? fmt::format(" branch {}", op.branch) : "",
                      exchange == nullptr ? "own rows" : owners_text(exchange->receives),
                      op.last ? ", finish" : ""));
    }
    if (op.kind != Op::Kind::kExchange || op.round != step) continue;
    for (const Transfer& send : op.sends) {
      say(fmt::format("send {} rows{} to rank {}", send.rows,
                      send.owner == rank ? "" : fmt::format(" of rank {}", send.owner), send.peer));
    }
    for (const Transfer& receive : op.receives) {
      say(fmt::format(
          "receive {} rows{} from rank {}", receive.rows,
          receive.owner == receive.peer ? "" : fmt::format(" of rank {}", receive.owner),
          receive.peer));
    }
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::int64_t RankSchedule::rows_sent() const {
  std::int64_t rows = 0;
  for (const Op& op : ops) {
    for (const Transfer& send : op.sends) rows += send.rows;
  }
  return rows;
}

std::int64_t RankSchedule::rows_received() const {
  std::int64_t rows = 0;
  for (const Op& op : ops) {
    for (const Transfer& receive : op.receives) rows += receive.rows;
  }
  return rows;
}

int RankSchedule::launches() const {
  return static_cast<int>(
      std::ranges::count_if(ops, [](const Op& op) { return op.kind == Op::Kind::kCompute; }));
}

const Op* RankSchedule::exchange_of(int round, int* index) const {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != Op::Kind::kExchange || ops[i].round != round) continue;
    *index = static_cast<int>(i);
    return &ops[i];
  }
  return nullptr;
}

RankSchedule make_schedule(const Needs& needs, const Rounds& rounds, int rank, bool has_rows) {
  return RankWriter(needs, rounds, rank, has_rows).write();
}

std::vector<std::string> describe(const RankSchedule& schedule, std::int64_t packed_rows, int rank,
                                  int rounds) {
  std::vector<std::string> lines;
  for (int step = 0; step <= rounds; ++step) {
    lines.push_back(fmt::format("rank {} step {}: {}", rank, step,
                                describe_step(schedule, packed_rows, rank, step)));
  }
  return lines;
}

std::vector<std::string> describe(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    std::ranges::move(
        describe(schedule.ranks[at], schedule.packed[at].count(), rank, schedule.rounds),
        std::back_inserter(lines));
  }
  return lines;
}

}  // namespace annulus::ring
