#include "ring/check_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "pattern/classify.h"

namespace annulus::ring {
namespace {

using Kind = Violation::Kind;

class Report {
 public:
  template <typename... Arguments>
  void add(Kind kind, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    constexpr int kMostOfAKind = 8;
    if (++count_[kind] > kMostOfAKind) return;
    violations_.push_back({kind, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }
  bool has(Kind kind) const { return count_.contains(kind); }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  std::map<Kind, int> count_;
  std::vector<Violation> violations_;
};

const std::vector<Op>& ops_of(const Schedule& schedule, int rank) {
  return schedule.ops[static_cast<std::size_t>(rank)];
}

// ---- Numbers

void check_numbers(const Schedule& schedule, Report* report) {
  const int ranks = schedule.ranks;
  const auto rank_or_none = [&](int rank) { return rank >= kNone && rank < ranks; };
  if (schedule.ops.size() != static_cast<std::size_t>(ranks) ||
      schedule.shard_bytes.size() != static_cast<std::size_t>(ranks)) {
    report->add(Kind::kIllFormed, "{} ranks, but ops for {} and shards for {}", ranks,
                schedule.ops.size(), schedule.shard_bytes.size());
    return;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Op>& ops = ops_of(schedule, rank);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      bool good = op.step >= 0 && op.step < ranks && rank_or_none(op.owner) &&
                  rank_or_none(op.send_to) && rank_or_none(op.send_owner) &&
                  rank_or_none(op.receive_from) && rank_or_none(op.receive_owner);
      good = good && op.buffer >= kCallersTensors && op.buffer < 2;
      good = good && op.send_buffer >= 0 && op.send_buffer < 2;
      good = good && op.receive_buffer >= 0 && op.receive_buffer < 2;
      for (const int wait : op.waits) good = good && wait >= 0 && wait < static_cast<int>(i);
      if (op.kind == Op::Kind::kCompute || op.kind == Op::Kind::kPack) {
        good = good && op.owner != kNone;
      }
      if (op.kind == Op::Kind::kPack) good = good && op.buffer >= 0;
      if (op.send_to != kNone) good = good && op.send_owner != kNone;
      if (op.receive_from != kNone) good = good && op.receive_owner != kNone;
      if (!good) report->add(Kind::kIllFormed, "rank {} op {}: a number is out of range", rank, i);
    }
  }
}

// ---- Pairs

// Whether any row of `rank` sees any key of `owner`.
bool sees(const Problem& problem, const ShardMap& shards, int rank, int owner) {
  const auto& q = shards.q[static_cast<std::size_t>(rank)];
  const auto& k = shards.k[static_cast<std::size_t>(owner)];
  for (std::int64_t head = 0; head < problem.pattern.heads(); ++head) {
    for (const Segment& rows : q) {
      for (const Segment& keys : k) {
        const std::int64_t first_q = problem.q_position() + rows.start;
        const std::int64_t first_k = problem.k_position() + keys.start;
        if (rows.length * keys.length > (std::int64_t{1} << 24)) {
          if (pattern::visible_pairs(problem.pattern, head,
                                     {rows.length, keys.length, first_q, first_k}) > 0) {
            return true;
          }
          continue;
        }
        for (std::int64_t i = 0; i < rows.length; ++i) {
          for (std::int64_t j = 0; j < keys.length; ++j) {
            if (problem.pattern.visible(head, first_q + i, first_k + j)) return true;
          }
        }
      }
    }
  }
  return false;
}

void check_pairs(const Schedule& schedule, const Problem& problem, const ShardMap& shards,
                 Report* report) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    std::vector<int> computed(static_cast<std::size_t>(schedule.ranks), 0);
    for (const Op& op : ops_of(schedule, rank)) {
      if (op.kind == Op::Kind::kCompute) ++computed[static_cast<std::size_t>(op.owner)];
    }
    for (int owner = 0; owner < schedule.ranks; ++owner) {
      const int times = computed[static_cast<std::size_t>(owner)];
      if (times == 1 || !sees(problem, shards, rank, owner)) continue;
      report->add(times == 0 ? Kind::kPairMissing : Kind::kPairTwice,
                  "rank {} sees keys of rank {} and computes with them {} times", rank, owner,
                  times);
    }
  }
}

// ---- Sends and receives

struct Place {
  int rank = 0;
  int op = 0;
};

const Op* exchange_of(const Schedule& schedule, int rank, int step, int* index) {
  const std::vector<Op>& ops = ops_of(schedule, rank);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != Op::Kind::kExchange || ops[i].step != step) continue;
    *index = static_cast<int>(i);
    return &ops[i];
  }
  return nullptr;
}

void check_matching(const Schedule& schedule, Report* report) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const Op& op : ops_of(schedule, rank)) {
      int index = 0;
      if (op.send_to != kNone) {
        const Op* peer = exchange_of(schedule, op.send_to, op.step, &index);
        if (peer == nullptr || peer->receive_from != rank || peer->receive_owner != op.send_owner) {
          report->add(Kind::kUnmatched,
                      "rank {} step {} sends keys of rank {} to rank {}, which does not receive "
                      "them then",
                      rank, op.step, op.send_owner, op.send_to);
        }
      }
      if (op.receive_from != kNone) {
        const Op* peer = exchange_of(schedule, op.receive_from, op.step, &index);
        if (peer == nullptr || peer->send_to != rank || peer->send_owner != op.receive_owner) {
          report->add(Kind::kUnmatched,
                      "rank {} step {} receives keys of rank {} from rank {}, which does not send "
                      "them then",
                      rank, op.step, op.receive_owner, op.receive_from);
        }
      }
    }
  }
}

// ---- Order: every op has a start and an end; vector clocks over the streams say what is known to
// have ended when another starts. A matched exchange ends on both sides after it started on both.

class Order {
 public:
  Order(const Schedule& schedule, Report* report) : schedule_(schedule) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      begin_.push_back(static_cast<int>(nodes_.size()));
      for (int op = 0; op < static_cast<int>(ops_of(schedule, rank).size()); ++op) {
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
    return ops_of(schedule_, at.place.rank)[static_cast<std::size_t>(at.place.op)];
  }
  int stream_of(const Place& place) const {
    return place.rank * 2 + op_of(node(place)).on_exchange_stream();
  }

  void connect() {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      int last[2] = {kNone, kNone};
      int number[2] = {0, 0};
      const std::vector<Op>& ops = ops_of(schedule_, rank);
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

  // What an op itself waits for while it runs: the start of the other side.
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

  void settle(Report* report) {
    const auto streams = static_cast<std::size_t>(schedule_.ranks) * 2;
    std::vector<int> peers;
    // What is known when an op ends: what it knew at its start, what its peers knew at theirs, and
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
    // An op can start once those before it have ended, and they once their peers can start.
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

// ---- Buffers

struct Access {
  Place place;
  bool write = false;
  int owner = kNone;
};

void check_buffer(const Schedule& schedule, const Order& order, int rank, int buffer,
                  Report* report) {
  std::vector<Access> accesses;
  const std::vector<Op>& ops = ops_of(schedule, rank);
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
    // The writes that have ended before it starts; the one no other of them comes after counts.
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

// ---- State

void check_state(const Schedule& schedule, const ShardMap& shards, Report* report) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    int launches = 0;
    bool ended = false;
    for (const Op& op : ops_of(schedule, rank)) {
      if (op.kind != Op::Kind::kCompute) continue;
      if (op.first != (launches == 0) || ended) {
        report->add(Kind::kState, "rank {} step {}: launch {} {}", rank, op.step, launches,
                    ended ? "comes after the rows were finished"
                          : (op.first ? "starts from nothing" : "carries on from nothing"));
      }
      if (op.buffer == kCallersTensors && op.owner != rank) {
        report->add(Kind::kNotThere, "rank {} step {} takes its own keys for those of rank {}",
                    rank, op.step, op.owner);
      }
      ended = op.last;
      ++launches;
    }
    const bool rows = pattern::total_length(shards.q[static_cast<std::size_t>(rank)]) > 0;
    if (rows && !ended) {
      report->add(Kind::kState, "rank {} never finishes its rows", rank);
    }
    if (launches > schedule.ranks) {
      report->add(Kind::kTooMany, "rank {} launches {} kernels in a ring of {}", rank, launches,
                  schedule.ranks);
    }
    // What the rank put on its own stream must be over when the caller's stream goes on.
    const std::vector<Op>& ops = ops_of(schedule, rank);
    int last_exchange = kNone;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      if (ops[static_cast<std::size_t>(i)].on_exchange_stream()) last_exchange = i;
    }
    const bool joined =
        last_exchange == kNone || std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
          return op.kind == Op::Kind::kJoin &&
                 std::find(op.waits.begin(), op.waits.end(), last_exchange) != op.waits.end();
        });
    if (!joined) report->add(Kind::kOverwritten, "rank {} ends before its last exchange", rank);
  }
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kPairMissing:
      return "pair missing";
    case Kind::kPairTwice:
      return "pair twice";
    case Kind::kUnmatched:
      return "unmatched";
    case Kind::kNotThere:
      return "not there";
    case Kind::kOverwritten:
      return "overwritten";
    case Kind::kStuck:
      return "stuck";
    case Kind::kState:
      return "state";
    case Kind::kTooMany:
      return "too many launches";
    case Kind::kIllFormed:
      return "ill-formed";
  }
  return "unknown";
}

std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards) {
  Report report;
  check_numbers(schedule, &report);
  if (report.has(Kind::kIllFormed)) return report.take();
  check_pairs(schedule, problem, shards, &report);
  check_matching(schedule, &report);
  check_state(schedule, shards, &report);
  const Order order(schedule, &report);
  if (!report.has(Kind::kStuck)) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      for (const int buffer : {0, 1}) check_buffer(schedule, order, rank, buffer, &report);
    }
  }
  return report.take();
}

}  // namespace annulus::ring
