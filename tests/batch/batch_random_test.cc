// Random batches, compared with the oracle. Requests have any lengths, in pages of any size at any
// places. The order of warps and the times at which copies complete are random too.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "batch/batch_case.h"
#include "support/device.h"
#include "support/options.h"
#include "support/random_problem.h"

namespace {

using namespace annulus;
using test::BatchCase;
using test::Placing;
using test::Request;

// The properties for which kernels are compiled. Each structure is used by several batches, because
// compiling takes longer than running.
class Structure {
 public:
  explicit Structure(std::uint64_t seed) : random_(seed) {
    static constexpr std::array<const char*, 14> kPatterns = {
        "causal",
        "causal & (window(70, 0) | sink(9))",
        "dense",
        "causal & window(200, 0)",
        "causal | prefix(30)",
        "window(20, 20) | global(5)",
        "causal & keys(20, 150)",
        "queries(10, 60) & causal",
        "documents([0, 37, 120]) & causal",
        "causal & ~keys(30, 50)",
        "sink(40)",
        "heads(causal, causal & window(50, 0))",
        "heads(causal & window(30, 0), dense, sink(20) | keys(60, 90), queries(0, 40))",
        "causal & head_groups(2, dense, window(40, 40))"};
    struct Heads {
      std::int64_t heads, kv_heads;
    };
    static constexpr std::array<Heads, 6> kHeads = {Heads{1, 1}, {8, 2}, {6, 2},
                                                    {20, 1},     {5, 5}, {12, 3}};
    const auto any_of = [&](const auto& all) {
      return all[random_.below(static_cast<std::uint32_t>(std::size(all)))];
    };
    const Heads heads = any_of(kHeads);
    problem_.heads = heads.heads;
    problem_.kv_heads = heads.kv_heads;
    const HeadDims dims = random_.below(2) == 0 ? HeadDims{64, 64} : any_of(supported_dims());
    problem_.dim_qk = dims.qk;
    problem_.dim_v = dims.v;
    problem_.dtype = random_.below(3) == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
    problem_.pattern = Pattern::parse(any_of(kPatterns));
    if (random_.below(6) == 0) problem_.score.scale = 0.4 * random_.normal();
    if (random_.below(6) == 0) problem_.score.softcap = 5 + 20 * random_.uniform();
    problem_.score = test::random_score(random_, problem_.score, problem_.heads);
    problem_.carry_in = random_.below(4) == 0;
    problem_.carry_out = random_.below(4) == 0;
    problem_.want_lse = !problem_.carry_out && random_.below(4) > 0;
    problem_.lse_base = random_.below(2) == 0 ? LseBase::kNatural : LseBase::kTwo;
    pages_ = random_.below(4);
    if (random_.below(4) == 0) problem_.block_keys = 16;
    problem_.row_limits = random_.below(4) == 0;
  }
  // A problem with pages of another size that has the same kernel.
  BatchProblem problem(base::Random& random) const {
    static constexpr std::int64_t kSizes[4][3] = {
        {0, 0, 0}, {1, 7, 19}, {16, 48, 80}, {64, 64, 128}};
    BatchProblem made = problem_;
    made.page_rows = kSizes[pages_][random.below(3)];
    made.block_keys *= 1 + random.below(9);
    if (made.block_keys > 0) made.max_blocks = 1 + random.below(30);
    return made;
  }

 private:
  base::Random random_;
  BatchProblem problem_;
  std::uint32_t pages_ = 0;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random(seed), seed_(seed) {}

  std::vector<Request> requests() {
    std::vector<Request> made(1 + random.below(9));
    for (Request& request : made) {
      request.queries = random.below(3) > 0 ? 1 : random.below(70);
      request.keys = random.below(5) == 0 ? random.below(3) : random.below(400);
      request.position = random.below(4) == 0 ? random.below(1000) : 0;
      request.seed = seed_ * 100 + random.below(1000);
    }
    return made;
  }
  Placing placing() {
    return {.heads_first = random.below(2) == 0,
            .together = random.below(3) == 0,
            .listed = random.below(2) == 0,
            .own_tables = random.below(3) == 0,
            .slabs = random.below(2) == 0,
            .in_place = random.below(2) == 0,
            .nan = random.below(2) == 0,
            .gap = random.below(4),
            .seed = random.below(1000000)};
  }
  BatchOptions options() {
    BatchOptions made;
    made.part_keys = 128 * random.below(3);
    made.max_multiprocessors = static_cast<int>(random.below(4));
    return made;
  }

  base::Random random;

 private:
  std::uint64_t seed_;
};

TEST_CASE("random batches give the oracle's answers") {
  const Device device = Device::open(test::device_name());
  const bool many = test::options().problems > 0;
  const int count = many ? test::options().problems : 8;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t first = test::seed_of(900) * 100000;
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const Structure structure(first + static_cast<std::uint64_t>(many ? i / 10 : i));
    Draw draw(seed);
    BatchProblem problem = structure.problem(draw.random);
    const std::vector<Request> requests = draw.requests();
    Placing placing = draw.placing();
    placing.in_place = placing.in_place && problem.carry_in && problem.carry_out;
    problem.most = test::bounds_of(requests);
    problem.most.rows += placing.gap;
    SimulationOptions simulation;
    simulation.seed = seed;
    device.set_simulation(simulation);
    const BatchPlan plan = plan_batch(device, problem, draw.options());
    const BatchCase step(device, plan, requests, placing);
    if (placing.nan) test::lose_unseen_pages(step, problem, requests);
    step.run();
    const std::string name = fmt::format(
        "batch {}: {}/{} heads of {}/{}, {}, {}, pages of {}, {} blocks of {}{}{}", seed,
        problem.heads, problem.kv_heads, problem.dim_qk, problem.dim_v, problem.pattern.to_string(),
        problem.score.to_string(), problem.page_rows, problem.max_blocks, problem.block_keys,
        problem.row_limits ? ", rows with limits" : "",
        placing.nan ? ", NaN in between, pages lost" : "");
    test::check_answers(plan.problem(), requests, step.answers(), name);
    // No entry outside the requests' pages was used.
    if (plan.status(step.workspace()).rule != BatchRule::kNone)
      FAIL_CHECK(name << ": a wrong rule");
  }
}

// Memory whose first and last numbers belong to no request.
class Fenced {
 public:
  Fenced(const Device& device, std::int64_t bytes)
      : device_(device), words_(static_cast<std::size_t>((bytes + 7) / 8 + 2 * kFence), kNobody) {
    memory_ = device_.allocate(words_.size() * 8);
    device_.copy_to_device(memory_.data(), words_.data(), words_.size() * 8);
  }
  void* data() const { return static_cast<std::uint64_t*>(memory_.data()) + kFence; }
  bool is_whole() {
    device_.copy_to_host(words_.data(), memory_.data(), words_.size() * 8);
    const auto is_nobodys = [](std::uint64_t word) { return word == kNobody; };
    return std::all_of(words_.begin(), words_.begin() + kFence, is_nobodys) &&
           std::all_of(words_.end() - kFence, words_.end(), is_nobodys);
  }

 private:
  static constexpr std::int64_t kFence = 8192;
  static constexpr std::uint64_t kNobody = 0x5a17c0de5a17c0de;
  Device device_;
  std::vector<std::uint64_t> words_;
  DeviceMemory memory_;
};

TEST_CASE("hostile numbers in the device memory of a step reach nothing outside") {
  const Device device = Device::open(test::device_name());
  const bool many = test::options().problems > 0;
  const int count = many ? test::options().problems : 12;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t first = test::seed_of(901) * 100000;
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    const Structure structure(first + static_cast<std::uint64_t>(i / (many ? 20 : 4)));
    Draw draw(seed);
    base::Random& random = draw.random;
    BatchProblem problem = structure.problem(random);
    problem.carry_in = problem.carry_out = false;
    const std::vector<Request> requests = draw.requests();
    Placing placing = draw.placing();
    placing.nan = true;  // numbers may refer to rows that belong to no request
    problem.most = test::bounds_of(requests);
    problem.most.rows += 2 * placing.gap;
    const BatchPlan plan = plan_batch(device, problem, draw.options());
    const BatchCase step(device, plan, requests, placing);
    BatchOperands operands = step.operands();
    Fenced o(device, problem.most.rows * problem.heads * problem.dim_v * 2);
    Fenced lse(device, problem.most.rows * problem.heads * 4);
    Fenced workspace(device, static_cast<std::int64_t>(plan.workspace_bytes()));
    operands.o = o.data();
    operands.o_strides = {problem.heads * problem.dim_v, problem.dim_v};
    if (problem.want_lse) {
      operands.lse = static_cast<float*>(lse.data());
      operands.lse_strides = {problem.heads, 1};
    }
    // The arrays that the device reads, with their lengths.
    const BatchMetadata& metadata = step.metadata();
    const std::int64_t most = problem.most.requests;
    const auto entries = [&](const PageTable& table, std::int64_t with_begin) {
      return table.begin != nullptr ? with_begin : most * table.width;
    };
    const std::pair<const std::int32_t*, std::int64_t> arrays[] = {
        {metadata.q_begin, most + 1},
        {metadata.k_length, most},
        {metadata.requests, 1},
        {metadata.k_position, most},
        {metadata.k_begin, most},
        {metadata.k_pages.begin, most + 1},
        {metadata.v_pages.begin, most + 1},
        {metadata.k_pages.ids, entries(metadata.k_pages, metadata.k_entries)},
        {metadata.v_pages.ids, entries(metadata.v_pages, metadata.v_entries)},
        {metadata.blocks, most * problem.kv_heads * problem.max_blocks},
        {metadata.row_end, problem.most.rows}};
    const auto hostile = [&]() -> std::int32_t {
      const auto pages = static_cast<std::int32_t>(operands.k_pages);
      switch (random.below(7)) {
        case 0:
          return static_cast<std::int32_t>(random.below(0x80000000u));
        case 1:
          return -static_cast<std::int32_t>(random.below(0x80000000u)) - 1;
        case 2:
          return pages;
        case 3:
          return pages - static_cast<std::int32_t>(random.below(64));
        case 4:
          return static_cast<std::int32_t>(random.below(4)) - 2;
        case 5:
          return 0x7fffffff;
        default:
          return static_cast<std::int32_t>(random.below(1000));
      }
    };
    for (int n = 1 + static_cast<int>(random.below(6)); n > 0; --n) {
      const auto& [array, length] = arrays[random.below(std::size(arrays))];
      if (array == nullptr || length == 0) continue;
      const std::int32_t value = hostile();
      const auto at = static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint32_t>(length)));
      device.copy_to_device(const_cast<std::int32_t*>(array) + at, &value, sizeof(value));
    }
    plan.prepare(nullptr, metadata, workspace.data());
    plan.run(nullptr, operands, workspace.data());
    REQUIRE_NOTHROW(device.synchronize());
    CHECK((o.is_whole() && lse.is_whole() && workspace.is_whole()));
  }
}

}  // namespace
