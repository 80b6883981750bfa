#include "support/ring_case.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "api/impl.h"
#include "support/device.h"

namespace annulus::test {
namespace {

std::int64_t pick(base::Random& random, std::int64_t low, std::int64_t high) {
  return low + random.below(static_cast<std::uint32_t>(high - low + 1));
}

Pattern ring_pattern(base::Random& random, std::int64_t seq_q, std::int64_t seq_k,
                     std::int64_t heads) {
  const std::int64_t near = pick(random, 0, 90);
  switch (random.below(10)) {
    case 0:
      return dense();
    case 1:
      return causal();
    case 2:
      return window(near, near / 2);
    case 3:
      return causal() & (window(near, 0) | global(near / 8));
    case 4: {
      std::vector<std::int64_t> starts;
      for (std::int64_t at = pick(random, 0, 60); at < std::max(seq_q, seq_k);
           at += pick(random, 1, 80)) {
        starts.push_back(at);
      }
      return documents(starts) & causal();
    }
    case 5:
      return causal() & (window(near, 0) | global({near, 2 * near + 1, 150}));
    case 6: {
      BlockLayout layout;
      layout.block_rows = std::int64_t{8} << random.below(4);
      layout.block_columns = std::int64_t{8} << random.below(4);
      layout.seq_q = seq_q;
      layout.seq_k = seq_k;
      layout.heads = random.below(2) == 0 ? 1 : heads;
      layout.indptr = {0};
      for (std::int64_t row = 0; row < layout.heads * layout.rows(); ++row) {
        for (std::int64_t column = 0; column < layout.columns(); ++column) {
          if (random.below(3) == 0) layout.indices.push_back(static_cast<std::int32_t>(column));
        }
        layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
      }
      return blocks(layout, OutsideLayout::kHidden);
    }
    // random() draws from the whole sequence, and a shard must not draw from its own blocks.
    case 7:
      return causal() & (annulus::random(3, near, 16) | window(near / 4, 0));
    case 8:
      return ::annulus::heads({causal() & segment(near + 1, 2), dilated(1 + near / 16)});
    default:
      return random_pattern(random, seq_q, seq_k, heads, 2);
  }
}

// The rows that a shard holds of a whole tensor, in another memory order.
HostTensor take_rows(const HostTensor& whole, const std::vector<Segment>& shard, Order order) {
  std::int64_t rows = 0;
  for (const Segment& segment : shard) rows += segment.length;
  HostTensor part = make_tensor(whole.batch, rows, whole.heads, whole.dim, order);
  std::int64_t to = 0;
  for (const Segment& segment : shard) {
    for (std::int64_t row = segment.start; row < segment.start + segment.length; ++row, ++to) {
      for (std::int64_t b = 0; b < whole.batch; ++b) {
        for (std::int64_t head = 0; head < whole.heads; ++head) {
          std::memcpy(part.bits.data() + part.offset(b, to, head),
                      whole.bits.data() + whole.offset(b, row, head),
                      static_cast<std::size_t>(whole.dim) * 2);
        }
      }
    }
  }
  return part;
}

DeviceMemory upload(const Device& device, const HostTensor& tensor) {
  DeviceMemory memory = device.allocate(tensor.bits.size() * 2);
  device.copy_to_device(memory.data(), tensor.bits.data(), memory.bytes());
  return memory;
}

}  // namespace

Case random_ring_case(std::uint64_t seed, std::uint64_t index) {
  base::Random random(seed * 7000003 + index);
  Problem problem;
  problem.batch = pick(random, 1, 2);
  problem.kv_heads = pick(random, 1, 2);
  problem.heads = problem.kv_heads * pick(random, 1, 2);
  problem.seq_k = pick(random, 0, 300);
  problem.seq_q = random.below(3) == 0 ? pick(random, 0, 300) : problem.seq_k;
  // There are few head dims, because compiling kernels for a thousand cases would take an hour
  // otherwise.
  problem.dim_qk = problem.dim_v = random.below(4) == 0 ? 128 : 64;
  if (random.below(10) == 0) problem.dim_qk = 192, problem.dim_v = 128;
  problem.dtype = random.below(2) == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
  problem.pattern = ring_pattern(random, problem.seq_q, problem.seq_k, problem.heads);
  if (random.below(5) == 0) {
    const Pattern more = ring_pattern(random, problem.seq_q, problem.seq_k, problem.heads);
    problem.pattern = sum({problem.pattern, more});
  }
  if (random.below(8) == 0) problem.score.softcap = 5 + 20 * random.uniform();
  problem.score = random_score(random, problem.score, problem.heads);
  if (random.below(8) == 0) problem.q0 = pick(random, -50, 200);
  if (random.below(8) == 0) problem.k0 = pick(random, -50, 200);
  problem.layer = random.below(3);
  problem.want_lse = random.below(3) > 0;
  problem.lse_base = random.below(2) == 0 ? LseBase::kNatural : LseBase::kTwo;
  return make_case(problem, seed ^ (index << 20), static_cast<Order>(random.below(3)));
}

ShardMap random_shards(base::Random& random, int ranks, std::int64_t seq_q, std::int64_t seq_k) {
  const std::uint32_t kind = random.below(3);
  if (kind < 2) {
    const std::int64_t multiples[] = {0, 1, 7, 16, 64};
    return make_shards(kind == 0 ? Sharding::kContiguous : Sharding::kZigzag, ranks, seq_q, seq_k,
                       multiples[random.below(5)]);
  }
  const auto deal = [&](std::int64_t length) {
    std::vector<std::vector<Segment>> shards(static_cast<std::size_t>(ranks));
    for (std::int64_t at = 0; at < length;) {
      const std::int64_t rows = std::min(length - at, pick(random, 1, 100));
      shards[random.below(static_cast<std::uint32_t>(ranks))].push_back({at, rows});
      at += rows;
    }
    return shards;
  };
  return {deal(seq_q), deal(seq_k)};
}

std::vector<Device> ring_devices(int ranks) {
  std::vector<Device> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string name = device_name();
    const bool one = !on_simulator() || name.find(':', 4) != name.npos;
    if (one && rank > 0) {
      devices.push_back(devices[0]);
      continue;
    }
    devices.push_back(Device::open(one ? name : name + ":" + std::to_string(rank)));
  }
  return devices;
}

RingMemory::RingMemory(const std::vector<Device>& devices, const Case& whole,
                       const ShardMap& shards)
    : devices_(devices), whole_(whole), shards_(shards) {
  const Problem& problem = whole.problem;
  for (std::size_t at = 0; at < devices.size(); ++at) {
    const Device& device = devices[at];
    Rank rank;
    const auto order = static_cast<Order>(at % 3);
    rank.q = take_rows(whole.q, shards.q[at], order);
    rank.k = take_rows(whole.k, shards.k[at], order);
    rank.v = take_rows(whole.v, shards.k[at], static_cast<Order>((at + 1) % 3));
    rank.o = make_tensor(problem.batch, rank.q.rows, problem.heads, problem.dim_v, order);
    rank.q_memory = upload(device, rank.q);
    rank.k_memory = upload(device, rank.k);
    rank.v_memory = upload(device, rank.v);
    rank.o_memory = device.allocate(rank.o.bits.size() * 2);
    RingCall call;
    call.operands.q = rank.q_memory.data();
    call.operands.k = rank.k_memory.data();
    call.operands.v = rank.v_memory.data();
    call.operands.o = rank.o_memory.data();
    call.operands.q_strides = rank.q.strides;
    call.operands.k_strides = rank.k.strides;
    call.operands.v_strides = rank.v.strides;
    call.operands.o_strides = rank.o.strides;
    if (problem.want_lse) {
      rank.lse = device.allocate(
          static_cast<std::size_t>(problem.batch * problem.heads * rank.q.rows) * sizeof(float));
      call.operands.lse = static_cast<float*>(rank.lse.data());
    }
    rank.stream = device::Stream(api::inside(device).context);
    call.stream = rank.stream.handle();
    ranks_.push_back(std::move(rank));
    calls_.push_back(call);
  }
  reset();
}

void RingMemory::synchronize() const {
  for (const Rank& rank : ranks_) rank.stream.synchronize();
}

void RingMemory::reset() {
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    for (const DeviceMemory* memory : {&ranks_[at].o_memory, &ranks_[at].lse}) {
      const std::vector<std::uint16_t> nan((memory->bytes() + 1) / 2, 0x7fff);
      devices_[at].copy_to_device(memory->data(), nan.data(), memory->bytes());
    }
  }
}

DeviceAnswer RingMemory::answer() const {
  synchronize();
  const Problem& problem = whole_.problem;
  DeviceAnswer answer;
  answer.o = whole_.o;
  if (problem.want_lse) {
    answer.lse.resize(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));
  }
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    HostTensor o = ranks_[at].o;
    devices_[at].copy_to_host(o.bits.data(), ranks_[at].o_memory.data(), o.bits.size() * 2);
    std::vector<float> lse(ranks_[at].lse.bytes() / sizeof(float));
    devices_[at].copy_to_host(lse.data(), ranks_[at].lse.data(), ranks_[at].lse.bytes());
    std::int64_t from = 0;
    for (const Segment& segment : shards_.q[at]) {
      for (std::int64_t row = segment.start; row < segment.start + segment.length; ++row, ++from) {
        for (std::int64_t b = 0; b < problem.batch; ++b) {
          for (std::int64_t head = 0; head < problem.heads; ++head) {
            std::memcpy(answer.o.bits.data() + answer.o.offset(b, row, head),
                        o.bits.data() + o.offset(b, from, head),
                        static_cast<std::size_t>(problem.dim_v) * 2);
            if (lse.empty()) continue;
            const std::int64_t line = b * problem.heads + head;
            answer.lse[static_cast<std::size_t>(line * problem.seq_q + row)] =
                lse[static_cast<std::size_t>(line * o.rows + from)];
          }
        }
      }
    }
  }
  return answer;
}

std::vector<RingRank> ring_ranks(const std::vector<Device>& devices, const Problem& problem,
                                 const ShardMap& shards, const RingOptions& options) {
  std::vector<RingRank> ranks;
  for (const Device& device : devices) ranks.push_back({device, problem, shards, options});
  return ranks;
}

}  // namespace annulus::test
