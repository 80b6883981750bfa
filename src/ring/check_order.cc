#include "ring/check_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

// Identifies an op by its rank and its index among the ops of the rank.
struct Place {
  int rank = 0;
  int op = 0;
};

// Orders the ops of all ranks by vector clocks: `known` of an op has, for each stream, the number
// of the stream's ops that have ended when the op starts. A matched exchange ends on both sides
// only after it has started on both.
class Order {
 public:
  Order(const Schedule& schedule, ViolationReport* report) : schedule_(schedule) {
    for (int rank = 0; rank < schedule.rank_count(); ++rank) {
      begin_.push_back(static_cast<int>(nodes_.size()));
      for (int op = 0; op < static_cast<int>(schedule.ops_of(rank).size()); ++op) {
        nodes_.push_back({{rank, op}, {}, {}, 0, false});
      }
    }
    connect();
    settle(report);
  }

  // Whether op a has ended before op b starts.
  bool before(const Place& a, const Place& b) const {
    const Node& first = node(a);
    const Node& second = node(b);
    return second.known[static_cast<std::size_t>(stream_of(a))] >= first.number;
  }

 private:
  struct Node {
    Place place;
    std::vector<int> after;  // nodes that must have ended before this one starts
    std::vector<int> known;  // [stream]: the number of its ops that have ended when this one starts
    int number = 0;          // its position in its stream, from 1
    bool done = false;
  };

  int index(const Place& place) const {
    return begin_[static_cast<std::size_t>(place.rank)] + place.op;
  }
  const Node& node(const Place& place) const {
    return nodes_[static_cast<std::size_t>(index(place))];
  }
  const Op& op_of(const Node& at) const {
    return schedule_.ops_of(at.place.rank)[static_cast<std::size_t>(at.place.op)];
  }
  int stream_of(const Place& place) const {
    return place.rank * 2 + op_of(node(place)).on_exchange_stream();
  }

  void connect() {
    for (int rank = 0; rank < schedule_.rank_count(); ++rank) {
      int last[2] = {kNone, kNone};
      int number[2] = {0, 0};
      const std::vector<Op>& ops = schedule_.ops_of(rank);
      for (int op = 0; op < static_cast<int>(ops.size()); ++op) {
        Node& at = nodes_[static_cast<std::size_t>(index({rank, op}))];
        const bool stream = ops[static_cast<std::size_t>(op)].on_exchange_stream();
        if (last[stream] != kNone) at.after.push_back(index({rank, last[stream]}));
        for (const int wait : ops[static_cast<std::size_t>(op)].waits) {
          at.after.push_back(index({rank, wait}));
        }
        last[stream] = op;
        at.number = ++number[stream];
      }
    }
  }

  // Finds the ops that must have started before an op can end: the other sides of an exchange.
  void peers_of(const Node& at, std::vector<int>* peers) const {
    peers->clear();
    const Op& op = op_of(at);
    int found = 0;
    for (const std::vector<Transfer>* transfers : {&op.sends, &op.receives}) {
      for (const Transfer& transfer : *transfers) {
        const RankSchedule& other = schedule_.ranks[static_cast<std::size_t>(transfer.peer)];
        if (other.exchange_of(op.round, &found) != nullptr) {
          peers->push_back(index({transfer.peer, found}));
        }
      }
    }
  }

  // Computes `known` of every op. The order of the computation follows the edges.
  void settle(ViolationReport* report) {
    const auto streams = static_cast<std::size_t>(schedule_.rank_count()) * 2;
    std::vector<int> peers;
    // At its end an op knows what it knew at its start, what its peers knew at their starts, and
    // itself.
    const auto known_at_end = [&](const Node& at) {
      std::vector<int> known = at.known;
      peers_of(at, &peers);
      for (const int peer : peers) {
        const std::vector<int>& other = nodes_[static_cast<std::size_t>(peer)].known;
        for (std::size_t s = 0; s < streams; ++s) known[s] = std::max(known[s], other[s]);
      }
      int& own = known[static_cast<std::size_t>(stream_of(at.place))];
      own = std::max(own, at.number);
      return known;
    };
    // An op can start after the ops before it have ended. An op ends after its peers have started.
    // The loop repeats until no further op can start. The ops that remain wait for each other in a
    // circle.
    bool progress = true;
    std::size_t settled = 0;
    while (progress) {
      progress = false;
      for (Node& at : nodes_) {
        if (at.done) continue;
        bool ready = true;
        for (const int other : at.after) {
          const Node& earlier = nodes_[static_cast<std::size_t>(other)];
          ready = ready && earlier.done;
          peers_of(earlier, &peers);
          for (const int peer : peers) ready = ready && nodes_[static_cast<std::size_t>(peer)].done;
        }
        if (!ready) continue;
        at.known.assign(streams, 0);
        for (const int other : at.after) {
          const std::vector<int> known = known_at_end(nodes_[static_cast<std::size_t>(other)]);
          for (std::size_t s = 0; s < streams; ++s) at.known[s] = std::max(at.known[s], known[s]);
        }
        at.done = true;
        progress = true;
        ++settled;
      }
    }
    if (settled == nodes_.size()) return;
    for (Node& at : nodes_) {
      if (at.done) continue;
      report->add(Kind::kStuck, "rank {} round {} waits for ops that wait for it", at.place.rank,
                  op_of(at).round);
      at.known.assign(streams, 0);
    }
  }

  const Schedule& schedule_;
  std::vector<int> begin_;
  std::vector<Node> nodes_;
};

// The access of an op to the rows of one place: a slot, or the rank's own packed rows.
struct Access {
  int op = 0;
  bool write = false;
  pattern::Interval at;    // an interval of rows of the place
  int owner = kNone;       // the owner of these rows
  std::int64_t first = 0;  // the first of them among the owner's packed rows
};

// The accesses of a rank's ops to one place.
std::vector<Access> accesses_of(const Schedule& schedule, int rank, int place) {
  std::vector<Access> accesses;
  const RankSchedule& own = schedule.ranks[static_cast<std::size_t>(rank)];
  const auto add = [&](std::size_t op, bool write, const Transfer& transfer) {
    if (transfer.slot != place) return;
    accesses.push_back({static_cast<int>(op),
                        write,
                        {transfer.row, transfer.row + transfer.rows},
                        transfer.owner,
                        transfer.first});
  };
  for (std::size_t i = 0; i < own.ops.size(); ++i) {
    const Op& op = own.ops[i];
    for (const Transfer& send : op.sends) add(i, false, send);
    for (const Transfer& receive : op.receives) add(i, true, receive);
    if (op.kind == Op::Kind::kPack && place == kOwnRows) {
      const std::int64_t rows = schedule.packed[static_cast<std::size_t>(rank)].count();
      accesses.push_back({static_cast<int>(i), true, {0, rows}, rank, 0});
    }
    if (op.kind != Op::Kind::kCompute || op.slot != place || op.slot == kCallersTensors) continue;
    // A launch reads all rows that arrived in its round, at the places where the exchange stored
    // them.
    int index = 0;
    const Op* exchange = own.exchange_of(op.round, &index);
    if (exchange == nullptr) continue;
    for (const Transfer& receive : exchange->receives) {
      accesses.push_back({static_cast<int>(i),
                          false,
                          {receive.row, receive.row + receive.rows},
                          receive.owner,
                          receive.first});
    }
  }
  return accesses;
}

// The rows that a slot, or the buffer of packed rows, holds: for each interval of its rows, the
// owner of the rows and the packed row that is first in the interval.
class Contents {
 public:
  void write(const Access& access) {
    cut(access.at.begin);
    cut(access.at.end);
    held_.erase(held_.lower_bound(access.at.begin), held_.lower_bound(access.at.end));
    held_[access.at.begin] = {access.at.end, access.owner, access.first};
  }
  // Returns nothing if the rows are the ones that the access expects, else a text for the rows
  // found instead.
  std::optional<std::string> missing(const Access& access) const {
    std::int64_t row = access.at.begin;
    while (row < access.at.end) {
      const auto behind = held_.upper_bound(row);
      if (behind == held_.begin()) return "nothing";
      const auto& [begin, held] = *std::prev(behind);
      if (held.end <= row) return "nothing";
      if (held.owner != access.owner ||
          held.first + row - begin != access.first + row - access.at.begin) {
        return fmt::format("row {} of rank {}", held.first + row - begin, held.owner);
      }
      row = held.end;
    }
    return std::nullopt;
  }

 private:
  struct Held {
    std::int64_t end;
    int owner;
    std::int64_t first;
  };
  void cut(std::int64_t row) {
    const auto behind = held_.upper_bound(row);
    if (behind == held_.begin()) return;
    const auto at = std::prev(behind);
    if (at->first == row || at->second.end <= row) return;
    const Held rest = {at->second.end, at->second.owner, at->second.first + row - at->first};
    at->second.end = row;
    held_[row] = rest;
  }

  std::map<std::int64_t, Held> held_;
};

std::string name_of(int place) {
  return place == kOwnRows ? "the packed rows" : fmt::format("slot {}", place);
}

// Checks that every read of a place finds the rows it expects, that no write can overtake a read,
// and that all writes of the same rows are ordered.
void check_place(const Schedule& schedule, const Order& order, int rank, int place,
                 ViolationReport* report) {
  const std::vector<Access> accesses = accesses_of(schedule, rank, place);
  const std::vector<Op>& ops = schedule.ops_of(rank);
  const auto round = [&](const Access& access) {
    return ops[static_cast<std::size_t>(access.op)].round;
  };
  const auto before = [&](const Access& a, const Access& b) {
    return order.before({rank, a.op}, {rank, b.op});
  };
  const auto touch = [](const Access& a, const Access& b) {
    return !pattern::intersection(a.at, b.at).empty();
  };
  for (const Access& reader : accesses) {
    if (reader.write) continue;
    // A read finds the result of the writes that have ended before it starts, in their order. A
    // write to its rows that is ordered neither before nor after the read may overwrite them.
    std::vector<const Access*> writers;
    for (const Access& writer : accesses) {
      if (!writer.write || !touch(writer, reader)) continue;
      if (before(writer, reader)) {
        writers.push_back(&writer);
      } else if (!before(reader, writer)) {
        report->add(Kind::kOverwritten,
                    "rank {}: rows of rank {} arrive in {} in round {} while round {} may still "
                    "read rows of rank {} there",
                    rank, writer.owner, name_of(place), round(writer), round(reader), reader.owner);
      }
    }
    std::ranges::stable_sort(writers,
                             [&](const Access* a, const Access* b) { return before(*a, *b); });
    Contents contents;
    for (const Access* writer : writers) contents.write(*writer);
    if (const auto found = contents.missing(reader)) {
      report->add(Kind::kNotThere,
                  "rank {} round {} reads {} rows of rank {} from {}, which has {}", rank,
                  round(reader), reader.at.size(), reader.owner, name_of(place), *found);
    }
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t j = i + 1; j < accesses.size(); ++j) {
      const Access& a = accesses[i];
      const Access& b = accesses[j];
      if (!a.write || !b.write || !touch(a, b) || before(a, b) || before(b, a)) continue;
      report->add(Kind::kOverwritten,
                  "rank {}: rounds {} and {} write the same rows of {} in no order", rank, round(a),
                  round(b), name_of(place));
    }
  }
}

}  // namespace

void check_order(const Schedule& schedule, ViolationReport* report) {
  const Order order(schedule, report);
  if (report->has(Kind::kStuck)) return;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    for (const int place : {kOwnRows, 0, 1}) check_place(schedule, order, rank, place, report);
  }
}

}  // namespace annulus::ring
