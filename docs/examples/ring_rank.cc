// One rank of a ring, in a separate process that torchrun starts:
//
//   torchrun --nproc-per-node 4 --no-python example_ring_rank
//
// The ranks meet on the host of rank 0 and exchange rows over NCCL. Without a launcher, the ring
// has one rank.

#include <annulus/communicator.h>
#include <annulus/ring.h>
#include <annulus/types.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kSeq = 1000, kHeads = 4, kKvHeads = 2, kDim = 64;

// The library reads no variable of a launcher, so the program does.
std::string variable(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}
int number(const char* name, const char* otherwise) {
  return std::atoi(variable(name, otherwise).c_str());
}

// The GPU of this rank, or a simulated device if there is no GPU.
annulus::Device open_device(int local_rank) {
  const std::string first = annulus::Device::open().info().name;  // "cuda:0", or "sim:sm_90a"
  const bool simulated = first.starts_with("sim:");
  const std::string kind = simulated ? first.substr(0, first.find(':', 4)) : "cuda";
  return annulus::Device::open(kind + ":" + std::to_string(local_rank));
}

annulus::DeviceMemory upload(const annulus::Device& device, std::int64_t rows, std::int64_t heads) {
  const std::vector<std::uint16_t> ones(rows * heads * kDim, 0x3f80);  // 1.0 in bf16
  annulus::DeviceMemory memory = device.allocate(ones.size() * 2);
  device.copy_to_device(memory.data(), ones.data(), memory.bytes());
  return memory;
}

int run() {
  const int rank = number("RANK", "0"), ranks = number("WORLD_SIZE", "1");
  const annulus::Device device = open_device(number("LOCAL_RANK", "0"));

  // torchrun itself listens on MASTER_PORT. The token keeps out processes of other jobs.
  annulus::RendezvousOptions meet;
  meet.address = "tcp:" + variable("MASTER_ADDR", "localhost") + ":" +
                 std::to_string(number("MASTER_PORT", "29500") + 1);
  meet.token = "ring " + variable("TORCHELASTIC_RUN_ID", "by hand").substr(0, 50);
  meet.rank = rank, meet.ranks = ranks;
  const annulus::Rendezvous meeting = annulus::Rendezvous::meet(meet);
  const annulus::Communicator communicator = annulus::Communicator::open(device, meeting);

  annulus::Problem problem;  // the whole problem, the same on every rank
  problem.heads = kHeads, problem.kv_heads = kKvHeads;
  problem.seq_q = problem.seq_k = kSeq;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = annulus::causal();
  const auto shards = annulus::make_shards(annulus::Sharding::kZigzag, ranks, kSeq, kSeq);
  const annulus::RingRankPlan ring = annulus::plan_ring(device, communicator, problem, shards);

  const annulus::Problem& shape = ring.rank_problem();  // Sq and Sk: the rows of this rank's shard
  const annulus::DeviceMemory q = upload(device, shape.seq_q, kHeads);
  const annulus::DeviceMemory kv = upload(device, shape.seq_k, kKvHeads);
  const annulus::DeviceMemory o = device.allocate(q.bytes());
  const annulus::DeviceMemory workspace = device.allocate(ring.workspace_bytes());
  annulus::RingCall call;
  call.operands.q = q.data(), call.operands.o = o.data();
  call.operands.k = call.operands.v = kv.data();
  call.operands.q_strides = call.operands.o_strides =
      annulus::Strides::bshd(shape.seq_q, kHeads, kDim);
  call.operands.k_strides = call.operands.v_strides =
      annulus::Strides::bshd(shape.seq_k, kKvHeads, kDim);
  call.workspace = workspace.data();
  ring.run(call);  // returns when NCCL has queued the rows; later work on the stream sees all of O

  std::vector<std::uint16_t> answer(o.bytes() / 2);
  device.copy_to_host(answer.data(), o.data(), o.bytes());
  int wrong = 0;
  for (const std::uint16_t value : answer) wrong += value != 0x3f80;  // an average of ones is one
  const annulus::RingInfo& info = ring.info();
  std::printf("rank %d of %d on %s: %lld rows, %d rounds; %d numbers are wrong\n", rank, ranks,
              device.info().name.c_str(), static_cast<long long>(shape.seq_q), info.rounds, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const annulus::Error& error) {
    // The text names the rank that is late, has gone or differs.
    std::fprintf(stderr, "rank %s: %s\n", variable("RANK", "0").c_str(), error.what());
    return 1;
  }
}
