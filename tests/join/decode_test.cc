// Decoding over ranks that hold the keys of a cache in turn. Each step appends a key and joins the
// answers of all ranks. The plans are made before the first step.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/join.h"
#include "annulus/observe.h"
#include "exchange/ranks.h"
#include "program/input/request.h"
#include "support/options.h"

namespace annulus {
namespace {

using program::Request;
using program::RequestTensors;
using Bits = std::vector<std::uint16_t>;

constexpr std::int64_t kHeads = 4, kKvHeads = 2, kDim = 64, kMaxKeys = 160, kRequests = 2;
constexpr std::int64_t kKeyElements = kKvHeads * kDim, kRowElements = kHeads * kDim;

BatchProblem decode_problem(const KeyInterleave& interleave, std::int64_t queries) {
  BatchProblem problem;
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = Pattern::parse("causal & (window(60, 0) | sink(3))");
  problem.want_lse = true;
  problem.most = {.requests = kRequests,
                  .rows = kRequests * queries,
                  .rows_of_one = queries,
                  .keys_of_one = kMaxKeys};
  problem.interleave = interleave;
  return problem;
}

struct Joined {
  Bits o;                  // [rows, H, Dv]
  std::vector<float> lse;  // [rows, H]
  friend bool operator==(const Joined&, const Joined&) = default;
};

// A rank's cache, and the memory for its steps.
class Decoder {
 public:
  Decoder(const Device& device, const Communicator& ranks, std::int64_t block, std::int64_t queries)
      : device_(device),
        ranks_(ranks),
        queries_(queries),
        problem_(decode_problem({block, ranks.ranks(), ranks.rank()}, queries)),
        append_(plan_append(device, append_problem())) {
    const auto memory = [&](std::int64_t bytes) {
      return device.allocate(static_cast<std::size_t>(bytes));
    };
    const std::int64_t rows = kRequests * queries;
    k_ = memory(kRequests * kMaxKeys * kKeyElements * 2);
    v_ = memory(kRequests * kMaxKeys * kKeyElements * 2);
    new_k_ = memory(rows * kKeyElements * 2);
    new_v_ = memory(rows * kKeyElements * 2);
    q_ = memory(rows * kRowElements * 2);
    o_ = memory(rows * kRowElements * 2);
    lse_ = memory(rows * kHeads * 4);
    joined_o_ = memory(rows * kRowElements * 2);
    joined_lse_ = memory(rows * kHeads * 4);
    q_begin_ = memory((kRequests + 1) * 4);
    k_length_ = memory(kRequests * 4);
    for (std::int64_t r = 0; r < kRequests; ++r) {
      tensors_.push_back(program::tensors_of(problem_, {queries, kMaxKeys, 0, seed(r)}));
    }
    std::vector<std::int32_t> begins;
    for (std::int64_t r = 0; r <= kRequests; ++r) {
      begins.push_back(static_cast<std::int32_t>(r * queries));
    }
    device.copy_to_device(q_begin_.data(), begins.data(), begins.size() * 4);
    metadata_.q_begin = static_cast<const std::int32_t*>(q_begin_.data());
    metadata_.k_length = static_cast<const std::int32_t*>(k_length_.data());
    for (std::int64_t r = 0; r < kRequests; ++r) {
      device.copy_to_device(static_cast<std::uint16_t*>(q_.data()) + r * queries * kRowElements,
                            tensors_[static_cast<std::size_t>(r)].q.data(),
                            static_cast<std::size_t>(queries * kRowElements) * 2);
    }
  }

  // The step after which request r has lengths[r] keys. The last `queries` of them are new.
  void append(const std::vector<std::int32_t>& lengths) {
    device_.copy_to_device(k_length_.data(), lengths.data(), lengths.size() * 4);
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      if (lengths[r] == 0) continue;
      const auto copy = [&](const DeviceMemory& to, const Bits& from) {
        device_.copy_to_device(static_cast<std::uint16_t*>(to.data()) +
                                   static_cast<std::int64_t>(r) * queries_ * kKeyElements,
                               from.data() + (lengths[r] - queries_) * kKeyElements,
                               static_cast<std::size_t>(queries_ * kKeyElements) * 2);
      };
      copy(new_k_, tensors_[r].k);
      copy(new_v_, tensors_[r].v);
    }
    AppendOperands operands;
    operands.new_k = new_k_.data();
    operands.new_v = new_v_.data();
    operands.new_k_strides = operands.new_v_strides = {kKeyElements, kDim};
    operands.k = k_.data();
    operands.v = v_.data();
    operands.k_strides = operands.v_strides = {kMaxKeys * kKeyElements, kKeyElements, kDim};
    operands.step = metadata_;
    append_.run(nullptr, operands);
  }

  // The step's joined answer with these plans.
  Joined attend(const BatchPlan& batch, const JoinPlan& join) const {
    const DeviceMemory workspace = device_.allocate(batch.workspace_bytes());
    const DeviceMemory scratch = device_.allocate(join.workspace_bytes());
    batch.prepare(nullptr, metadata_, workspace.data());
    BatchOperands operands;
    operands.q = q_.data();
    operands.k = k_.data();
    operands.v = v_.data();
    operands.o = o_.data();
    operands.lse = static_cast<float*>(lse_.data());
    operands.q_strides = operands.o_strides = {kRowElements, kDim};
    operands.lse_strides = {kHeads, 1};
    operands.k_strides = operands.v_strides = {kMaxKeys * kKeyElements, kKeyElements, kDim};
    batch.run(nullptr, operands, workspace.data());
    JoinOperands partial;
    partial.rows = kRequests * queries_;
    partial.o = operands.o;
    partial.lse = operands.lse;
    partial.o_strides = partial.joined_o_strides = operands.o_strides;
    partial.lse_strides = partial.joined_lse_strides = operands.lse_strides;
    partial.joined_o = joined_o_.data();
    partial.joined_lse = static_cast<float*>(joined_lse_.data());
    join.run(nullptr, partial, scratch.data());
    device_.synchronize();
    Joined made;
    made.o.resize(joined_o_.bytes() / 2);
    made.lse.resize(joined_lse_.bytes() / 4);
    device_.copy_to_host(made.o.data(), joined_o_.data(), joined_o_.bytes());
    device_.copy_to_host(made.lse.data(), joined_lse_.data(), joined_lse_.bytes());
    return made;
  }
  BatchPlan plan() const { return plan_batch(device_, problem_); }
  JoinPlan plan_of_join() const {
    return plan_join(device_, ranks_,
                     {.heads = kHeads, .dim_v = kDim, .max_rows = kRequests * queries_});
  }

  // The first error of a joined answer, compared with the oracle over all keys, or "".
  std::string wrong(const Joined& answer, const std::vector<std::int32_t>& lengths) const {
    BatchProblem whole = problem_;
    whole.interleave = {};
    for (std::int64_t r = 0; r < kRequests; ++r) {
      const Request request = {queries_, lengths[static_cast<std::size_t>(r)], 0, seed(r)};
      program::RequestAnswer of_request;
      const auto first = answer.o.begin() + r * queries_ * kRowElements;
      of_request.o.assign(first, first + queries_ * kRowElements);
      for (std::int64_t head = 0; head < kHeads; ++head) {
        for (std::int64_t row = 0; row < queries_; ++row) {
          of_request.lse.push_back(
              answer.lse[static_cast<std::size_t>((r * queries_ + row) * kHeads + head)]);
        }
      }
      const Comparison made = program::compare(
          whole, request, program::reference(whole, request, program::tensors_of(whole, request)),
          of_request);
      if (!made.within_tolerance || made.checked_rows != kHeads * queries_) {
        return "request " + std::to_string(r) + ": " + made.first_wrong;
      }
    }
    return {};
  }

 private:
  static std::uint64_t seed(std::int64_t request) {
    return 500 + static_cast<std::uint64_t>(request);
  }
  AppendProblem append_problem() const {
    AppendProblem problem;
    problem.kv_heads = kKvHeads;
    problem.dim_qk = problem.dim_v = kDim;
    problem.place = AppendPlace::kRequests;
    problem.interleave = problem_.interleave;
    problem.most = problem_.most;
    return problem;
  }

  Device device_;
  Communicator ranks_;
  std::int64_t queries_;
  BatchProblem problem_;
  AppendPlan append_;
  std::vector<RequestTensors> tensors_;
  BatchMetadata metadata_;
  DeviceMemory k_, v_, new_k_, new_v_, q_, o_, lse_, joined_o_, joined_lse_, q_begin_, k_length_;
};

void decode(int ranks, std::int64_t block, std::int64_t queries, int steps) {
  std::vector<std::string> found(static_cast<std::size_t>(ranks));
  test::on_ranks(ranks, {}, [&](const Communicator& rank, const Device& on) {
    std::string& wrong = found[static_cast<std::size_t>(rank.rank())];
    const auto note = [&](int step, const std::string& what) {
      if (wrong.empty() && !what.empty()) wrong = "step " + std::to_string(step) + ": " + what;
    };
    Decoder decoder(on, rank, block, queries);
    const BatchPlan batch = decoder.plan();
    const JoinPlan join = decoder.plan_of_join();
    if (join.info().exchanges != (ranks > 1 ? 1 : 0)) note(-1, join.info().reason);
    const std::int64_t compiles = on.metrics().compiles + on.metrics().kernels_from_disk;
    // The second request already has some keys when the first request begins.
    std::vector<std::int32_t> lengths(kRequests, 0);
    for (int step = 0; step < 5; ++step) {
      lengths[1] += static_cast<std::int32_t>(queries);
      decoder.append(lengths);
    }
    for (int step = 0; step < steps; ++step) {
      lengths[0] += static_cast<std::int32_t>(queries);
      lengths[1] += static_cast<std::int32_t>(queries);
      decoder.append(lengths);
      const Joined answer = decoder.attend(batch, join);
      if (step % 6 != 5) continue;
      note(step, decoder.wrong(answer, lengths));
      if (step % 12 == 11 && decoder.attend(decoder.plan(), decoder.plan_of_join()) != answer) {
        note(step, "a fresh plan has other bits");
      }
    }
    if (on.metrics().compiles + on.metrics().kernels_from_disk != compiles) {
      note(steps, "a kernel was compiled or loaded for a step");
    }
  });
  for (const std::string& one : found) CHECK(one == "");
}

TEST_CASE(
    "a cache that grows over ranks compiles nothing, and every step has the oracle's answer") {
  const int steps = test::options().problems > 0 ? test::options().problems : 36;
  decode(4, 1, 1, std::min(steps, static_cast<int>(kMaxKeys) - 5));
}

TEST_CASE("steps of several queries, other blocks and numbers of ranks") {
  decode(3, 4, 5, 12);
  decode(2, 16, 16, 5);
  decode(1, 1, 2, 6);
}

}  // namespace
}  // namespace annulus
