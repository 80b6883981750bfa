// Batches of requests as an engine has them, through the public interface only.
#include "annulus/batch.h"

#include <algorithm>
#include <numeric>

#include "outside/outside.h"

namespace {

using namespace annulus;
using test::Tensors;

// Two requests of three queries and fifty keys. Their K and V lie in pages of ten rows.
constexpr std::int64_t kQueries = 3, kKeys = 50, kPage = 10, kHeads = 4, kKvHeads = 2, kDim = 64;
constexpr std::int64_t kPageElements = kPage * kKvHeads * kDim;
const std::vector<std::int32_t> kPlaces = {7, 2, 9, 4, 0, 5, 8, 1, 3, 6};

Problem same_as_one_problem() {
  Problem problem;
  problem.batch = 2;
  problem.heads = kHeads, problem.kv_heads = kKvHeads;
  problem.seq_q = kQueries, problem.seq_k = kKeys;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = causal() & (window(30, 0) | sink(4));
  problem.want_lse = true;
  return problem;
}

BatchProblem batch_problem() {
  const Problem one = same_as_one_problem();
  BatchProblem problem;
  problem.heads = one.heads, problem.kv_heads = one.kv_heads;
  problem.dim_qk = one.dim_qk, problem.dim_v = one.dim_v;
  problem.pattern = one.pattern;
  problem.most = {.requests = 4, .rows = 20, .rows_of_one = 5, .keys_of_one = 60};
  problem.page_rows = kPage;
  problem.want_lse = true;
  return problem;
}

// Arranges the rows of a tensor of keys as pages at kPlaces.
std::vector<std::uint16_t> in_pages(const std::vector<std::uint16_t>& rows) {
  std::vector<std::uint16_t> pool(rows.size());
  for (std::size_t page = 0; page < kPlaces.size(); ++page) {
    std::copy_n(rows.begin() + static_cast<std::int64_t>(page) * kPageElements, kPageElements,
                pool.begin() + kPlaces[page] * kPageElements);
  }
  return pool;
}

TEST_CASE("requests of a batch have the answers of the oracle") {
  const Device& device = test::device();
  const Problem one = same_as_one_problem();
  Tensors tensors(device, one, 6);
  const BatchProblem problem = batch_problem();
  REQUIRE_NOTHROW(validate(problem));
  const BatchPlan plan = plan_batch(device, problem);
  CHECK(plan.problem().most.keys == 4 * 60);
  CHECK(plan.info().launches >= 1);
  CHECK(plan.info().part_keys % 128 == 0);
  CHECK(plan.info().registers > 0);
  // The reported configuration can be requested by its name.
  const BatchInfo named = plan_batch(device, problem, {.config = plan.info().config}).info();
  CHECK(named.config == plan.info().config);

  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  const DeviceMemory k = test::upload(device, in_pages(tensors.k));
  const DeviceMemory v = test::upload(device, in_pages(tensors.v));
  const auto numbers = [&](const std::vector<std::int32_t>& values) {
    return test::upload(device, values);
  };
  const DeviceMemory q_begin = numbers({0, kQueries, 2 * kQueries});
  const DeviceMemory k_length = numbers({kKeys, kKeys});
  const DeviceMemory requests = numbers({2});
  const DeviceMemory ids = numbers(kPlaces);
  BatchMetadata step;
  step.q_begin = static_cast<const std::int32_t*>(q_begin.data());
  step.k_length = static_cast<const std::int32_t*>(k_length.data());
  step.requests = static_cast<const std::int32_t*>(requests.data());
  step.k_pages = {.ids = static_cast<const std::int32_t*>(ids.data()), .width = kKeys / kPage};
  plan.prepare(nullptr, step, workspace.data());

  BatchOperands operands;
  operands.q = tensors.operands.q, operands.o = tensors.operands.o;
  operands.k = k.data(), operands.v = v.data();
  operands.lse = tensors.operands.lse;
  operands.q_strides = operands.o_strides = {.row = kHeads * kDim, .head = kDim};
  operands.lse_strides = {.row = kHeads, .head = 1};
  operands.k_strides = {.page = kPageElements, .row = kKvHeads * kDim, .head = kDim};
  operands.v_strides = operands.k_strides;
  operands.k_pages = operands.v_pages = static_cast<std::int64_t>(kPlaces.size());
  plan.run(nullptr, operands, workspace.data());
  device.synchronize();
  CHECK(plan.status(workspace.data()).rule == BatchRule::kNone);

  tensors.read_back(device);
  std::vector<float> lse;  // [B, H, Sq] from [B, Sq, H]
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t row = 0; row < kQueries; ++row) {
        lse.push_back(tensors.lse[static_cast<std::size_t>((b * kQueries + row) * kHeads + h)]);
      }
    }
  }
  HostResult result;
  result.o = tensors.o.data(), result.o_strides = tensors.operands.o_strides;
  result.lse = lse.data();
  const Comparison made = compare(one, reference(one, test::inputs_of(tensors)), result);
  CHECK_MESSAGE(made.within_tolerance, made.first_wrong);
  CHECK(made.checked_rows == 2 * kHeads * kQueries);

  // Wrong input on the device is reported by the status, and wrong input on the host by an error.
  const DeviceMemory too_long = numbers({kKeys, 61});
  step.k_length = static_cast<const std::int32_t*>(too_long.data());
  plan.prepare(nullptr, step, workspace.data());
  const BatchStatus found = plan.status(workspace.data());
  CHECK(found.rule == BatchRule::kKeys);
  CHECK(found.request == 1);
  CHECK(std::string(to_string(found.rule)).find("keys") != std::string::npos);
  step.q_begin = nullptr;
  test::check_fails(ErrorCode::kInvalidArgument, "q_begin is null",
                    [&] { plan.prepare(nullptr, step, workspace.data()); });
  operands.o = nullptr;
  test::check_fails(ErrorCode::kInvalidArgument, "O is null",
                    [&] { plan.run(nullptr, operands, workspace.data()); });
}

TEST_CASE("ranks that have blocks of keys in turn hold all of a request's keys together") {
  std::int64_t keys = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    keys += held_keys({.block = 3, .ranks = 4, .rank = rank}, 1000);
  }
  CHECK(keys == 1000);
  CHECK(held_keys({.block = 3, .ranks = 4, .rank = 3}, 9) == 0);
  BatchProblem problem = batch_problem();
  problem.interleave = {.block = 3, .ranks = 4, .rank = 4};
  test::check_fails(ErrorCode::kInvalidArgument, "interleave.rank is 4",
                    [&] { validate(problem); });
}

TEST_CASE("a batch that cannot be planned is refused with a reason") {
  BatchProblem problem = batch_problem();
  problem.most.keys_of_one = 0;
  test::check_fails(ErrorCode::kInvalidArgument, "most.keys_of_one is 0",
                    [&] { validate(problem); });
  problem = batch_problem();
  problem.pattern = strided(8, 4, 16);
  test::check_fails(ErrorCode::kUnsupported, "has no kernel for batches",
                    [&] { validate(problem); });
  problem = batch_problem();
  test::check_fails(ErrorCode::kOutOfMemory, "max_workspace_bytes is 1024",
                    [&] { plan_batch(test::device(), problem, {.max_workspace_bytes = 1024}); });
  test::check_fails(ErrorCode::kInvalidArgument, "'decode' is not a configuration",
                    [&] { plan_batch(test::device(), problem, {.config = "decode"}); });
  test::check_fails(ErrorCode::kUnsupported, "is not possible here: 96 columns", [&] {
    plan_batch(test::device(), problem, {.config = "decode m16 n96 w4 s2"});
  });
}

}  // namespace
