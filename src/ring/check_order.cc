#include "ring/check_order.h"

#include <algorithm>

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

// Names an op by its rank and its index among the rank's ops.
struct Place {
  int rank = 0;
  int op = 0;
};

// Orders the ops of all ranks by vector clocks: `known` of an op says, for each stream, how many of
// its ops have ended when this one starts. A matched exchange ends on both sides only after it has
// started on both.
class Order {
 public:
  Order(const Schedule& schedule, ViolationReport* report) : schedule_(schedule) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      begin_.push_back(static_cast<int>(nodes_.size()));
      for (int op = 0; op < static_cast<int>(schedule.of_rank(rank).size()); ++op) {
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
    std::vector<int> known;  // by stream: ops of it that have ended when this one starts
    int number = 0;          // its place in its stream, from 1
    bool done = false;
  };

  int index(const Place& place) const {
    return begin_[static_cast<std::size_t>(place.rank)] + place.op;
  }
  const Node& node(const Place& place) const {
    return nodes_[static_cast<std::size_t>(index(place))];
  }
  const Op& op_of(const Node& at) const {
    return schedule_.of_rank(at.place.rank)[static_cast<std::size_t>(at.place.op)];
  }
  int stream_of(const Place& place) const {
    return place.rank * 2 + op_of(node(place)).on_exchange_stream();
  }

  void connect() {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      int last[2] = {kNone, kNone};
      int number[2] = {0, 0};
      const std::vector<Op>& ops = schedule_.of_rank(rank);
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

  // Finds the ops whose start an op waits for while it runs: the other sides of an exchange.
  void peers_of(const Node& at, std::vector<int>* peers) const {
    peers->clear();
    const Op& op = op_of(at);
    int found = 0;
    for (const int peer : {op.send_to, op.receive_from}) {
      if (peer != kNone && exchange_of(schedule_, peer, op.step, &found) != nullptr) {
        peers->push_back(index({peer, found}));
      }
    }
  }

  // Finds `known` of every op, in any order that the edges allow.
  void settle(ViolationReport* report) {
    const auto streams = static_cast<std::size_t>(schedule_.ranks) * 2;
    std::vector<int> peers;
    // At its end an op knows what it knew at its start, what its peers knew at theirs, and itself.
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
    // An op can start when the ops before it have ended, and those end when their peers have
    // started. The loop repeats until no further op can start; ops that are left wait in a circle.
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
      report->add(Kind::kStuck, "rank {} step {} waits for what waits for it", at.place.rank,
                  op_of(at).step);
      at.known.assign(streams, 0);
    }
  }

  const Schedule& schedule_;
  std::vector<int> begin_;
  std::vector<Node> nodes_;
};

struct Access {
  Place place;
  bool write = false;
  int owner = kNone;
};

// Checks that every read of a buffer finds the keys it wants, that no write can overtake a read,
// and that all writes are ordered.
void check_buffer(const Schedule& schedule, const Order& order, int rank, int buffer,
                  ViolationReport* report) {
  std::vector<Access> accesses;
  const std::vector<Op>& ops = schedule.of_rank(rank);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    const Op& op = ops[static_cast<std::size_t>(i)];
    const Place place = {rank, i};
    if (op.kind == Op::Kind::kPack && op.buffer == buffer) {
      accesses.push_back({place, true, op.owner});
    }
    if (op.kind == Op::Kind::kCompute && op.buffer == buffer) {
      accesses.push_back({place, false, op.owner});
    }
    if (op.send_to != kNone && op.send_buffer == buffer) {
      accesses.push_back({place, false, op.send_owner});
    }
    if (op.receive_from != kNone && op.receive_buffer == buffer) {
      accesses.push_back({place, true, op.receive_owner});
    }
  }
  const auto step = [&](const Access& access) {
    return ops[static_cast<std::size_t>(access.place.op)].step;
  };
  for (const Access& reader : accesses) {
    if (reader.write) continue;
    // Of the writes that have ended before the read starts, the last one decides what the buffer
    // holds. A write that is neither before nor behind the read may overwrite it.
    const Access* last = nullptr;
    for (const Access& writer : accesses) {
      if (!writer.write) continue;
      if (order.before(writer.place, reader.place)) {
        if (last == nullptr || order.before(last->place, writer.place)) last = &writer;
      } else if (!order.before(reader.place, writer.place)) {
        report->add(Kind::kOverwritten,
                    "rank {} buffer {}: keys of rank {} arrive in step {} while step {} may still "
                    "read keys of rank {}",
                    rank, buffer, writer.owner, step(writer), step(reader), reader.owner);
      }
    }
    if (last == nullptr || last->owner != reader.owner) {
      report->add(Kind::kNotThere,
                  "rank {} step {} reads keys of rank {} from buffer {}, which "
                  "holds {} by then",
                  rank, step(reader), reader.owner, buffer,
                  last == nullptr ? "nothing" : fmt::format("those of rank {}", last->owner));
    }
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t j = i + 1; j < accesses.size(); ++j) {
      if (!accesses[i].write || !accesses[j].write) continue;
      if (order.before(accesses[i].place, accesses[j].place) ||
          order.before(accesses[j].place, accesses[i].place)) {
        continue;
      }
      report->add(Kind::kOverwritten, "rank {} buffer {}: steps {} and {} write it in no order",
                  rank, buffer, step(accesses[i]), step(accesses[j]));
    }
  }
}

}  // namespace

const Op* exchange_of(const Schedule& schedule, int rank, int step, int* index) {
  const std::vector<Op>& ops = schedule.of_rank(rank);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != Op::Kind::kExchange || ops[i].step != step) continue;
    *index = static_cast<int>(i);
    return &ops[i];
  }
  return nullptr;
}

void check_order(const Schedule& schedule, ViolationReport* report) {
  const Order order(schedule, report);
  if (report->has(Kind::kStuck)) return;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const int buffer : {0, 1}) check_buffer(schedule, order, rank, buffer, report);
  }
}

}  // namespace annulus::ring
