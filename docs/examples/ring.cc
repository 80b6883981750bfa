// Attention around a ring. The sequence is split over four ranks, and each rank has its own rows of
// Q, K, V and O. Here all ranks share one device. With four GPUs, open "cuda:0" to "cuda:3"
// instead.

#include <annulus/ring.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kSeq = 1000, kHeads = 4, kKvHeads = 2, kDim = 64;

// The memory of one rank on its device.
struct Rank {
  annulus::DeviceMemory q, kv, o, workspace;
  annulus::RingCall call;

  Rank(const annulus::Device& device, const annulus::RingPlan& ring, int rank) {
    const annulus::Problem& shape = ring.rank_problem(rank);  // Sq and Sk: the rows of its shard
    const auto upload = [&](std::int64_t rows, std::int64_t heads) {
      const std::vector<std::uint16_t> ones(rows * heads * kDim, 0x3f80);  // 1.0 in bf16
      annulus::DeviceMemory memory = device.allocate(ones.size() * 2);
      device.copy_to_device(memory.data(), ones.data(), memory.bytes());
      return memory;
    };
    q = upload(shape.seq_q, kHeads);
    kv = upload(shape.seq_k, kKvHeads);
    o = device.allocate(q.bytes());
    workspace =
        device.allocate(ring.workspace_bytes(rank));  // two shards, and the state of its rows
    annulus::Operands& operands = call.operands;
    operands.q = q.data(), operands.k = operands.v = kv.data(), operands.o = o.data();
    operands.q_strides = operands.o_strides = annulus::Strides::bshd(shape.seq_q, kHeads, kDim);
    operands.k_strides = operands.v_strides = annulus::Strides::bshd(shape.seq_k, kKvHeads, kDim);
    call.workspace = workspace.data();
  }
};

}  // namespace

int main() {
  const std::vector<annulus::Device> devices(kRanks, annulus::Device::open());

  annulus::Problem problem;  // the whole problem, as for one device
  problem.heads = kHeads, problem.kv_heads = kKvHeads;
  problem.seq_q = problem.seq_k = kSeq;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = annulus::causal() & annulus::window(255, 0);

  // Each rank holds a quarter of the sequence. With this window the next rank needs the end of a
  // shard, and gets only that. (Sharding::kZigzag balances the work of a causal problem.)
  const auto shards = annulus::make_shards(annulus::Sharding::kContiguous, kRanks, kSeq, kSeq);
  const annulus::RingPlan ring = annulus::plan_ring(devices, problem, shards);

  std::vector<Rank> ranks;
  std::vector<annulus::RingCall> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back(devices[rank], ring, rank);
    calls.push_back(ranks.back().call);
  }
  ring.run(calls);  // asynchronous: kernels on the caller's streams, copies on streams of the plan

  int wrong = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::uint16_t> o(ranks[rank].o.bytes() / 2);
    devices[rank].copy_to_host(o.data(), ranks[rank].o.data(), ranks[rank].o.bytes());
    for (const std::uint16_t value : o) wrong += value != 0x3f80;  // an average of ones is one
  }
  const annulus::RingInfo& info = ring.info();
  std::printf("%d ranks: %lld bytes sent, %lld in a plain ring; %d numbers are wrong\n", kRanks,
              static_cast<long long>(info.bytes_sent),
              static_cast<long long>(info.bytes_plain_ring), wrong);
  return wrong == 0 ? 0 : 1;
}
