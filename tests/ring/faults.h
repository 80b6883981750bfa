#ifndef ANNULUS_TESTS_RING_FAULTS_H_
#define ANNULUS_TESTS_RING_FAULTS_H_

// The problem that the ranks of fault tests compute. It is the same in every process, because its
// operands are computed from the positions of the rows.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "annulus/ring.h"
#include "base/half.h"
#include "base/random.h"

namespace annulus::test {

struct FaultProblem {
  static constexpr std::int64_t kRows = 192, kHeads = 2, kDim = 64;

  explicit FaultProblem(int ranks) : shards(make_shards(Sharding::kZigzag, ranks, kRows, kRows)) {
    problem.heads = kHeads;
    problem.seq_q = problem.seq_k = kRows;
    problem.dim_qk = problem.dim_v = kDim;
    problem.pattern = causal();
    problem.want_lse = true;
  }

  Problem problem;
  ShardMap shards;
};

// The tensors of one rank, and its call.
class FaultMemory {
 public:
  FaultMemory(const Device& device, const FaultProblem& of, int rank, std::size_t workspace_bytes)
      : rows_(rows_of(of.shards.q[static_cast<std::size_t>(rank)])) {
    for (DeviceMemory* memory : {&q_, &k_, &v_}) {
      const std::uint64_t tensor = memory == &q_ ? 1 : memory == &k_ ? 2 : 3;
      *memory = upload(device, of.shards.q[static_cast<std::size_t>(rank)], tensor);
    }
    o_ = device.allocate(values() * 2);
    lse_ = device.allocate(static_cast<std::size_t>(rows_ * FaultProblem::kHeads) * 4);
    workspace_ = device.allocate(workspace_bytes);
    call.operands.q = q_.data();
    call.operands.k = k_.data();
    call.operands.v = v_.data();
    call.operands.o = o_.data();
    call.operands.lse = static_cast<float*>(lse_.data());
    call.operands.q_strides = call.operands.k_strides = call.operands.v_strides =
        call.operands.o_strides = Strides::bshd(rows_, FaultProblem::kHeads, FaultProblem::kDim);
    call.workspace = workspace_.data();
  }

  // Hashes O and LSE, and then clears them.
  std::uint64_t take_hash(const Device& device) {
    std::vector<std::uint16_t> o(values());
    std::vector<float> lse(static_cast<std::size_t>(rows_ * FaultProblem::kHeads));
    device.copy_to_host(o.data(), o_.data(), o.size() * 2);
    device.copy_to_host(lse.data(), lse_.data(), lse.size() * 4);
    std::uint64_t hash = 0x9e3779b97f4a7c15;
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
    for (const std::uint16_t value : o) mix(value);
    for (const float value : lse) mix(std::bit_cast<std::uint32_t>(value));
    std::ranges::fill(o, std::uint16_t{0xffff});
    std::ranges::fill(lse, 0.0f);
    device.copy_to_device(o_.data(), o.data(), o.size() * 2);
    device.copy_to_device(lse_.data(), lse.data(), lse.size() * 4);
    return hash;
  }

  RingCall call;

 private:
  static std::int64_t rows_of(const std::vector<Segment>& shard) {
    std::int64_t rows = 0;
    for (const Segment& segment : shard) rows += segment.length;
    return rows;
  }
  std::size_t values() const {
    return static_cast<std::size_t>(rows_ * FaultProblem::kHeads * FaultProblem::kDim);
  }
  // bfloat16 numbers in [-1, 1), computed from tensor and place.
  DeviceMemory upload(const Device& device, const std::vector<Segment>& shard,
                      std::uint64_t tensor) const {
    std::vector<std::uint16_t> bits;
    for (const Segment& segment : shard) {
      for (std::int64_t row = segment.start; row < segment.start + segment.length; ++row) {
        base::Random random(tensor << 32 | static_cast<std::uint64_t>(row));
        for (std::int64_t i = 0; i < FaultProblem::kHeads * FaultProblem::kDim; ++i) {
          const float value = static_cast<float>(random.below(256)) / 128.0f - 1.0f;
          bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
        }
      }
    }
    DeviceMemory memory = device.allocate(bits.size() * 2);
    device.copy_to_device(memory.data(), bits.data(), bits.size() * 2);
    return memory;
  }

  std::int64_t rows_;
  DeviceMemory q_, k_, v_, o_, lse_, workspace_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_RING_FAULTS_H_
