#ifndef ANNULUS_TESTS_SUPPORT_RING_CASE_H_
#define ANNULUS_TESTS_SUPPORT_RING_CASE_H_

// A problem that is split for a ring and run there. The answers of the ranks are put together
// again.

#include <string>
#include <vector>

#include "annulus/ring.h"
#include "device/stream.h"
#include "ring/plan.h"
#include "support/device_case.h"

namespace annulus::test {

// A case of a few tiles. It may have any feature that a ring supports, but has no carried state.
Case random_ring_case(std::uint64_t seed, std::uint64_t index);
// Shards that are contiguous, zigzag, or made of pieces of random lengths in random order. Some
// ranks may hold no rows.
ShardMap random_shards(base::Random& random, int ranks, std::int64_t seq_q, std::int64_t seq_k);

// The first `ranks` simulated devices of the kind that tests run on, or one real device that all
// ranks share.
std::vector<Device> ring_devices(int ranks);

// The tensors of all ranks on their devices. Each rank has a different memory order.
class RingMemory {
 public:
  RingMemory(const std::vector<Device>& devices, const Case& whole, const ShardMap& shards);

  // Makes a workspace of bytes(rank) bytes for each rank.
  template <typename Bytes>
  void make_workspace(Bytes bytes) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].workspace = devices_[rank].allocate(bytes(static_cast<int>(rank)));
      calls_[rank].workspace = ranks_[rank].workspace.data();
    }
  }
  // The calls of all ranks, on streams that this object owns.
  const std::vector<RingCall>& calls() const { return calls_; }
  void synchronize() const;
  // Fills O and LSE with NaN again.
  void reset();
  // O and LSE of all ranks in the order of the whole problem.
  DeviceAnswer answer() const;

 private:
  struct Rank {
    HostTensor q, k, v, o;
    DeviceMemory q_memory, k_memory, v_memory, o_memory, lse, workspace;
    device::Stream stream;
  };
  std::vector<Device> devices_;
  const Case& whole_;
  ShardMap shards_;
  std::vector<Rank> ranks_;
  std::vector<RingCall> calls_;
};

std::vector<RingRank> ring_ranks(const std::vector<Device>& devices, const Problem& problem,
                                 const ShardMap& shards, const RingOptions& options = {});

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RING_CASE_H_
