// The rows that each rank of a ring holds.
#include <algorithm>
#include <array>

#include "annulus/ring.h"
#include "base/fail.h"
#include "base/math.h"

namespace annulus::inline v0 {
namespace {

// Cuts [0, length) into pieces whose edges are multiples of `multiple`, as evenly as that allows.
// If `multiple` is 0, it is the largest power of two up to 128 that leaves no piece empty.
class Pieces {
 public:
  Pieces(std::int64_t length, std::int64_t pieces, std::int64_t multiple)
      : length_(length), pieces_(pieces), multiple_(multiple) {
    if (multiple_ > 0) return;
    multiple_ = 128;
    while (multiple_ > 1 && base::ceil_div(length_, multiple_) < pieces_) multiple_ /= 2;
  }
  std::int64_t edge(std::int64_t piece) const {
    const std::int64_t units = base::ceil_div(length_, multiple_);
    // This is units * piece / pieces_ without a product that could exceed 64 bits.
    const std::int64_t unit = units / pieces_ * piece + units % pieces_ * piece / pieces_;
    // less than the length, because unit < units
    return unit >= units ? length_ : unit * multiple_;
  }
  Segment piece(std::int64_t index) const { return {edge(index), edge(index + 1) - edge(index)}; }

 private:
  std::int64_t length_;
  std::int64_t pieces_;
  std::int64_t multiple_;
};

void add(std::vector<Segment>* shard, const Segment& segment) {
  if (segment.length == 0) return;
  if (!shard->empty() && shard->back().start + shard->back().length == segment.start) {
    shard->back().length += segment.length;
  } else {
    shard->push_back(segment);
  }
}

std::vector<std::vector<Segment>> shard_rows(Sharding sharding, int ranks, std::int64_t length,
                                             std::int64_t multiple) {
  std::vector<std::vector<Segment>> shards(static_cast<std::size_t>(ranks));
  const bool zigzag = sharding == Sharding::kZigzag;
  const Pieces pieces(length, zigzag ? 2 * ranks : ranks, multiple);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& shard = shards[static_cast<std::size_t>(rank)];
    add(&shard, pieces.piece(rank));
    if (zigzag) add(&shard, pieces.piece(2 * ranks - 1 - rank));
  }
  return shards;
}

// Throws unless every row of [0, length) is in exactly one segment.
void check_partition(const char* name, const std::vector<std::vector<Segment>>& shards,
                     std::int64_t length) {
  struct Owned {
    Segment segment;
    std::size_t rank;
  };
  std::vector<Owned> all;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    for (const Segment& segment : shards[rank]) {
      if (segment.length < 0 || segment.start < 0 || segment.length > length ||
          segment.start > length - segment.length) {
        base::fail(ErrorCode::kInvalidArgument,
                   "rank {} holds rows [{}, {} + {}) of {}, which has {}", rank, segment.start,
                   segment.start, segment.length, name, length);
      }
      if (segment.length > 0) all.push_back({segment, rank});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Owned& a, const Owned& b) { return a.segment.start < b.segment.start; });
  std::int64_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Segment& segment = all[i].segment;
    if (segment.start < next) {
      base::fail(ErrorCode::kInvalidArgument, "row {} of {} is held twice, by rank {} and rank {}",
                 segment.start, name, all[i - 1].rank, all[i].rank);
    }
    if (segment.start > next) break;
    next = segment.start + segment.length;
  }
  if (next < length) {
    base::fail(ErrorCode::kInvalidArgument, "row {} of {} is held by no rank", next, name);
  }
}

void check_ranks(std::int64_t ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    base::fail(ErrorCode::kInvalidArgument, "a ring of {} ranks; give a number from 1 to {}", ranks,
               kMaxRanks);
  }
}

}  // namespace

const char* to_string(Sharding sharding) {
  switch (sharding) {
    case Sharding::kContiguous:
      return "contiguous";
    case Sharding::kZigzag:
      return "zigzag";
  }
  return "unknown sharding";
}

const char* to_string(Route route) {
  switch (route) {
    case Route::kAuto:
      return "auto";
    case Route::kDirect:
      return "direct";
    case Route::kRing:
      return "ring";
  }
  return "unknown route";
}

ShardMap make_shards(Sharding sharding, int ranks, std::int64_t seq_q, std::int64_t seq_k,
                     std::int64_t multiple) {
  check_ranks(ranks);
  if (sharding != Sharding::kContiguous && sharding != Sharding::kZigzag) {
    base::fail(ErrorCode::kInvalidArgument, "sharding {} is neither contiguous nor zigzag",
               static_cast<int>(sharding));
  }
  if (seq_q < 0 || seq_k < 0 || multiple < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "Sq {}, Sk {} and edges at multiples of {} rows cannot be sharded; none of them may "
               "be negative",
               seq_q, seq_k, multiple);
  }
  return {shard_rows(sharding, ranks, seq_q, multiple),
          shard_rows(sharding, ranks, seq_k, multiple)};
}

void validate(const ShardMap& shards, const Problem& problem) {
  check_ranks(shards.ranks());
  if (shards.k.size() != shards.q.size()) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "the shards of Q are for {} ranks, the shards of K for {}; give both the same number",
        shards.q.size(), shards.k.size());
  }
  check_partition("Q", shards.q, problem.seq_q);
  check_partition("K", shards.k, problem.seq_k);
  if (problem.dtype == Dtype::kFloat8E4M3) {
    base::fail(ErrorCode::kUnsupported,
               "a ring has no scales to go with e4m3 operands; give it bf16 or fp16 ones");
  }
  if (problem.carry_in || problem.carry_out) {
    base::fail(ErrorCode::kUnsupported,
               "a ring carries its state from step to step itself; carry_in and carry_out of its "
               "problem must be false");
  }
}

}  // namespace annulus::inline v0
