// Batches with wrong input. The host throws typed errors. The device cannot throw, so wrong
// requests lose their rows or keys, a status is reported, and all other answers are right.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "api/impl.h"
#include "batch/batch_case.h"
#include "device/stream.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::Answer;
using test::BatchCase;
using test::device;
using test::in_parts;
using test::Request;

BatchProblem problem_for(const std::vector<Request>& requests) {
  return test::problem_for(requests, 4);
}

const std::vector<Request> kRequests = {
    {1, 200, 0, 1}, {2, 70, 0, 2}, {1, 33, 0, 3}, {3, 150, 0, 4}, {40, 90, 0, 5}};

void poke(const std::int32_t* array, std::int64_t index, std::int32_t value) {
  device().copy_to_device(const_cast<std::int32_t*>(array) + index, &value, sizeof(value));
}

// Runs the step again with an error in its metadata.
void check_wrong(const std::string& what, BatchRule rule, std::int64_t request,
                 const std::vector<int>& harmed,
                 const std::function<void(BatchMetadata*, BatchOperands*)>& spoil,
                 const test::Placing& placing = {}) {
  CAPTURE(what);
  const BatchPlan plan = plan_batch(device(), problem_for(kRequests), in_parts());
  const BatchCase step(device(), plan, kRequests, placing);
  step.run();
  const std::vector<Answer> right = step.answers();
  const BatchCase again(device(), plan, kRequests, placing);
  BatchMetadata metadata = again.metadata();
  BatchOperands operands = again.operands();
  spoil(&metadata, &operands);
  plan.prepare(nullptr, metadata, again.workspace());
  plan.run(nullptr, operands, again.workspace());
  const std::vector<Answer> answers = again.answers();
  const BatchStatus status = plan.status(again.workspace());
  CHECK(status.rule == rule);
  CHECK(status.request == request);
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (std::find(harmed.begin(), harmed.end(), static_cast<int>(r)) != harmed.end()) continue;
    CAPTURE(r);
    CHECK(answers[r] == right[r]);
  }
  // With check_status, the run throws an error if a rule is broken.
  BatchOptions options = in_parts();
  options.check_status = true;
  const BatchPlan checking = plan_batch(device(), problem_for(kRequests), options);
  checking.prepare(nullptr, metadata, again.workspace());
  if (rule == BatchRule::kPage) return;
  CHECK_THROWS_WITH_AS(
      checking.run(nullptr, operands, again.workspace()),
      ("request " + std::to_string(request) + " of the step has " + to_string(rule)).c_str(),
      Error);
}

TEST_CASE("a step with wrong lengths or pages harms the requests that are wrong, and no other") {
  const auto set = [](const std::int32_t* BatchMetadata::*array, std::int64_t index,
                      std::int32_t value) {
    return [=](BatchMetadata* metadata, BatchOperands*) { poke(metadata->*array, index, value); };
  };
  check_wrong("more requests", BatchRule::kRequests, 0, {}, set(&BatchMetadata::requests, 0, 6));
  check_wrong("fewer than no requests", BatchRule::kRequests, 0, {0, 1, 2, 3, 4},
              set(&BatchMetadata::requests, 0, -1));
  check_wrong("rows that descend", BatchRule::kRows, 1, {1, 2}, set(&BatchMetadata::q_begin, 2, 0));
  check_wrong("rows of an earlier request", BatchRule::kRows, 1, {0, 1, 2, 3, 4},
              [](BatchMetadata* metadata, BatchOperands*) {
                const std::int32_t begins[] = {10, 20, 5, 20, 20, 20};
                for (int i = 0; i < 6; ++i) poke(metadata->q_begin, i, begins[i]);
              });
  check_wrong("rows beyond the end", BatchRule::kRows, 4, {4},
              set(&BatchMetadata::q_begin, 5, 1000));
  check_wrong("rows before the begin", BatchRule::kRows, 0, {0},
              set(&BatchMetadata::q_begin, 0, -3));
  check_wrong("too many rows", BatchRule::kRowsOfOne, 4, {3, 4},
              set(&BatchMetadata::q_begin, 4, 4));
  check_wrong("keys below 0", BatchRule::kKeys, 2, {2}, set(&BatchMetadata::k_length, 2, -1));
  check_wrong("too many keys", BatchRule::kKeys, 2, {2},
              set(&BatchMetadata::k_length, 2, std::numeric_limits<std::int32_t>::max()));
  check_wrong("a position beyond the end", BatchRule::kPosition, 3, {3},
              set(&BatchMetadata::k_position, 3, (1 << 30) - 20));
  check_wrong("entries that are too few", BatchRule::kPages, 4, {4},
              [](BatchMetadata* metadata, BatchOperands*) { poke(metadata->k_pages.begin, 5, 33); },
              {.listed = true});
  check_wrong("entries that begin below 0", BatchRule::kPages, 2, {2, 3},
              [](BatchMetadata* metadata, BatchOperands*) { poke(metadata->k_pages.begin, 3, -4); },
              {.listed = true});
  check_wrong("entries beyond the ids", BatchRule::kPages, 4, {4},
              [](BatchMetadata* metadata, BatchOperands*) {
                poke(metadata->k_pages.begin, 5,
                     static_cast<std::int32_t>(metadata->k_entries + 1));
              },
              {.listed = true});
  check_wrong("a page below 0", BatchRule::kPage, 3, {3},
              [](BatchMetadata* metadata, BatchOperands*) {
                poke(metadata->k_pages.ids, 3 * metadata->k_pages.width + 2, -1);
              });
  check_wrong("a page beyond the pool", BatchRule::kPage, 4, {4},
              [](BatchMetadata* metadata, BatchOperands* operands) {
                poke(metadata->k_pages.ids, 4 * metadata->k_pages.width + 1,
                     static_cast<std::int32_t>(operands->k_pages));
              });
}

TEST_CASE("keys beyond the rows of K or V are not read, and their request is named") {
  BatchProblem problem = problem_for(kRequests);
  problem.page_rows = 0;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const test::Placing placing = {.nan = true};
  const BatchCase right(device(), plan, kRequests, placing);
  right.run();
  const auto rows = static_cast<std::int32_t>(right.operands().k_pages);
  // One request with few queries and one with many, because each class has separate kernels.
  for (const std::int64_t r : {1, 4}) {
    const auto keys = static_cast<std::int32_t>(kRequests[static_cast<std::size_t>(r)].keys);
    for (const std::int32_t begin :
         {rows - keys, rows - keys + 1, rows, 1'000'000'000, 2'147'483'647, -1}) {
      CAPTURE(r);
      CAPTURE(begin);
      const BatchCase step(device(), plan, kRequests, placing);
      poke(step.metadata().k_begin, r, begin);
      step.run();
      const std::vector<Answer> answers = step.answers();
      const BatchStatus status = plan.status(step.workspace());
      const bool is_inside = begin == rows - keys;
      CHECK(status.rule == (is_inside ? BatchRule::kNone : BatchRule::kPages));
      CHECK(status.request == (is_inside ? 0 : r));
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (static_cast<std::int64_t>(i) != r) CHECK(answers[i] == right.answers()[i]);
      }
      const std::vector<std::uint16_t>& o = answers[static_cast<std::size_t>(r)].o;
      if (!is_inside) CHECK(std::ranges::count(o, 0) == std::ssize(o));
    }
  }
}

TEST_CASE("requests that have more keys together than planned lose those of the last ones") {
  BatchProblem problem = problem_for(kRequests);
  problem.most.keys -= 1;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  step.run();
  std::vector<Request> left = kRequests;
  left.back().keys = 0;
  test::check_answers(problem, left, step.answers(), "the last request without keys");
  CHECK(plan.status(step.workspace()).rule == BatchRule::kAllKeys);
  CHECK(plan.status(step.workspace()).request == 4);
}

TEST_CASE("a pool may hold more keys than the requests can have") {
  BatchProblem problem = problem_for(kRequests);
  problem.most.keys = 0;
  const std::size_t needed = plan_batch(device(), problem, in_parts()).workspace_bytes();
  for (const std::int64_t keys : {std::int64_t{1} << 20, std::int64_t{1} << 62}) {
    problem.most.keys = keys;
    CHECK(plan_batch(device(), problem, in_parts()).workspace_bytes() == needed);
  }
}

TEST_CASE("the begin of a request without rows takes no rows from others") {
  const std::vector<Request> requests = {{0, 70, 0, 1}, {2, 90, 0, 2}, {3, 33, 0, 3}};
  BatchProblem problem = problem_for(requests);
  problem.most.rows = 60;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, requests, {});
  // Request 1 begins at a row after its end.
  poke(step.metadata().q_begin, 0, 50);
  poke(step.metadata().q_begin, 1, 50);
  step.run();
  std::vector<Answer> answers = step.answers();
  const BatchCase right(device(), plan, requests, {});
  right.run();
  CHECK(answers[2] == right.answers()[2]);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kRows);
  CHECK(plan.status(step.workspace()).request == 1);
}

TEST_CASE("keys of a page that is none are not seen") {
  // In the expected answer, the keys of that page are hidden as if by a window, and all other keys
  // of the request are visible.
  const std::vector<Request> requests = {{1, 48, 0, 7}, {40, 48, 0, 7}};
  const BatchPlan plan = plan_batch(device(), problem_for(requests), in_parts());
  const BatchCase step(device(), plan, requests, {});
  poke(step.metadata().k_pages.ids, 0, -5);
  poke(step.metadata().k_pages.ids, step.metadata().k_pages.width, -5);
  step.run();
  BatchProblem hidden = problem_for(requests);
  hidden.pattern = Pattern::parse("causal & ~keys(0, 16)");
  test::check_answers(hidden, requests, step.answers(), "a page that is none");
}

TEST_CASE("a workspace may hold anything, and steps may follow one another in it") {
  const BatchPlan plan = plan_batch(device(), problem_for(kRequests), in_parts());
  const BatchCase first(device(), plan, kRequests, {});
  const std::vector<std::uint8_t> garbage(plan.workspace_bytes(), 0xa5);
  device().copy_to_device(first.workspace(), garbage.data(), garbage.size());
  first.run();
  test::check_answers(plan.problem(), kRequests, first.answers(), "garbage");
  const std::vector<Request> fewer = {{1, 20, 0, 9}, {0, 5, 0, 10}};
  const BatchCase second(device(), plan, fewer, {});
  plan.prepare(nullptr, second.metadata(), first.workspace());
  plan.run(nullptr, second.operands(), first.workspace());
  plan.run(nullptr, second.operands(), first.workspace());
  test::check_answers(plan.problem(), fewer, second.answers(), "the step after it");
}

TEST_CASE("one captured graph serves every step within the bounds") {
  const device::ContextPointer& context = api::inside(device()).context;
  const abi::CudaTable& table = context->table();
  if (table.stream_begin_capture == nullptr) return;
  const BatchPlan plan = plan_batch(device(), problem_for(kRequests), in_parts());
  BatchCase step(device(), plan, kRequests, {});
  const device::Stream stream(context);
  const device::ContextScope scope(*context);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  REQUIRE(table.stream_begin_capture(stream.handle(), 0) == 0);
  plan.prepare(stream.handle(), step.metadata(), step.workspace());
  plan.run(stream.handle(), step.operands(), step.workspace());
  REQUIRE(table.stream_end_capture(stream.handle(), &graph) == 0);
  REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
  // Requests lose keys from step to step, and in each step the last request leaves.
  for (int replay = 0; replay < 4; ++replay) {
    std::vector<Request> requests(kRequests.begin(), kRequests.end() - replay);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      requests[r].keys -= replay * static_cast<std::int64_t>(r + 1);
      poke(step.metadata().k_length, static_cast<std::int64_t>(r),
           static_cast<std::int32_t>(requests[r].keys));
    }
    poke(step.metadata().requests, 0, static_cast<std::int32_t>(requests.size()));
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    std::vector<Answer> answers = step.answers();
    answers.resize(requests.size());
    test::check_answers(plan.problem(), requests, answers, "replay " + std::to_string(replay));
  }
  CHECK(table.graph_exec_destroy(exec) == 0);
  CHECK(table.graph_destroy(graph) == 0);
}

TEST_CASE("with a limit of workspace parts are longer, so that all lists together fit") {
  BatchProblem problem = problem_for(kRequests);
  problem.most.keys_of_one = 100'000;
  problem.most.keys = 500'000;
  const BatchPlan whole = plan_batch(device(), problem);
  BatchOptions options;
  options.max_workspace_bytes = static_cast<std::int64_t>(whole.workspace_bytes()) * 3 / 4;
  const BatchPlan small = plan_batch(device(), problem, options);
  CHECK(static_cast<std::int64_t>(small.workspace_bytes()) <= options.max_workspace_bytes);
  CHECK(small.info().part_keys > whole.info().part_keys);
}

TEST_CASE("what the host can see is a typed error") {
  const auto refused = [](const char* what, ErrorCode code,
                          const std::function<void(BatchProblem*)>& spoil) {
    CAPTURE(what);
    BatchProblem problem = problem_for(kRequests);
    spoil(&problem);
    try {
      plan_batch(device(), problem);
      FAIL_CHECK("it was planned");
    } catch (const Error& error) {
      CHECK(error.code() == code);
    }
  };
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  constexpr auto kNone = ErrorCode::kUnsupported;
  refused("no requests", kWrong, [](BatchProblem* p) { p->most.requests = 0; });
  refused("too many requests", kWrong, [](BatchProblem* p) { p->most.requests = 70000; });
  refused("negative rows", kWrong, [](BatchProblem* p) { p->most.rows = -1; });
  refused("more rows of one than of all", kWrong,
          [](BatchProblem* p) { p->most.rows_of_one = 99; });
  refused("no keys", kWrong, [](BatchProblem* p) { p->most.keys_of_one = 0; });
  refused("negative keys of all", kWrong, [](BatchProblem* p) { p->most.keys = -1; });
  refused("negative pages", kWrong, [](BatchProblem* p) { p->page_rows = -16; });
  refused("heads that do not divide", kWrong, [](BatchProblem* p) { p->heads = 5; });
  refused("head dims without a kernel", kNone, [](BatchProblem* p) { p->dim_qk = p->dim_v = 80; });
  refused("e4m3", kNone, [](BatchProblem* p) { p->dtype = Dtype::kFloat8E4M3; });
  refused("scattered keys", kNone,
          [](BatchProblem* p) { p->pattern = Pattern::parse("dilated(3)"); });
  refused("requests that differ", kNone, [](BatchProblem* p) {
    p->pattern = batches({causal(), dense()});
  });
  refused("blocks of 24 keys", kNone, [](BatchProblem* p) {
    p->block_keys = 24;
    p->max_blocks = 2;
  });
  refused("more blocks than a list is made of", kNone, [](BatchProblem* p) {
    p->most.keys_of_one = p->most.keys = 1 << 23;
    p->block_keys = 16;
    p->max_blocks = 2;
  });
  refused("blocks whose keys have no number", kWrong, [](BatchProblem* p) {
    p->block_keys = (std::int64_t{1} << 30) - 16;
    p->max_blocks = 2;
  });
  refused("lists of more blocks than there can be", kWrong, [](BatchProblem* p) {
    p->block_keys = 16;
    p->max_blocks = 1 << 30;
  });
  refused("more lists than a launch takes", kNone, [](BatchProblem* p) {
    p->heads = p->kv_heads = 65535;
    p->most = {.requests = 65535, .rows = 1, .keys_of_one = 16};
    p->block_keys = 16;
    p->max_blocks = 1;
  });
  refused("negative blocks", kWrong, [](BatchProblem* p) { p->block_keys = -16; });
  refused("lists without entries", kWrong, [](BatchProblem* p) { p->block_keys = 16; });
  refused("entries without blocks", kWrong, [](BatchProblem* p) { p->max_blocks = 2; });
  refused("a sum", kNone, [](BatchProblem* p) { p->pattern = sum({causal(), sink(4)}); });
  refused("more forms than a table holds", kNone, [](BatchProblem* p) {
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i < 40; ++i) starts.push_back(3 * i);
    p->pattern = documents(starts);
  });
  BatchOptions options;
  options.part_keys = 100;
  CHECK_THROWS_AS(plan_batch(device(), problem_for(kRequests), options), Error);
  options = {};
  options.max_workspace_bytes = 1000;
  CHECK_THROWS_AS(plan_batch(device(), problem_for(kRequests), options), Error);

  const BatchPlan plan = plan_batch(device(), problem_for(kRequests));
  const BatchCase step(device(), plan, kRequests, {});
  const auto bad_prepare = [&](const std::function<void(BatchMetadata*)>& spoil) {
    BatchMetadata metadata = step.metadata();
    spoil(&metadata);
    CHECK_THROWS_AS(plan.prepare(nullptr, metadata, step.workspace()), Error);
  };
  bad_prepare([](BatchMetadata* m) { m->q_begin = nullptr; });
  bad_prepare([](BatchMetadata* m) { m->k_length = nullptr; });
  bad_prepare([](BatchMetadata* m) { m->k_pages.ids = nullptr; });
  bad_prepare([](BatchMetadata* m) { m->k_pages.width = 0; });
  bad_prepare([](BatchMetadata* m) { m->k_entries = -1; });
  bad_prepare([](BatchMetadata* m) { m->k_entries = 4; });  // the table has no `begin`
  bad_prepare([](BatchMetadata* m) { m->k_begin = m->k_length; });
  bad_prepare([](BatchMetadata* m) { m->blocks = m->k_length; });
  bad_prepare([](BatchMetadata* m) { m->row_end = m->k_length; });
  const auto bad_run = [&](const std::function<void(BatchOperands*)>& spoil) {
    BatchOperands operands = step.operands();
    spoil(&operands);
    CHECK_THROWS_AS(plan.run(nullptr, operands, step.workspace()), Error);
  };
  bad_run([](BatchOperands* o) { o->q = nullptr; });
  bad_run([](BatchOperands* o) { o->k = static_cast<const std::byte*>(o->k) + 2; });
  bad_run([](BatchOperands* o) { o->o = nullptr; });
  bad_run([](BatchOperands* o) { o->lse = nullptr; });
  bad_run([](BatchOperands* o) { o->o_strides.head = 0; });
  bad_run([](BatchOperands* o) { o->o_strides.row = o->o_strides.head; });  // the rows overlap
  bad_run([](BatchOperands* o) { o->lse_strides = {.row = 1, .head = -1}; });
  bad_run([](BatchOperands* o) { o->lse_strides = {}; });
  bad_run([](BatchOperands* o) { o->k_strides.row += 4; });
  bad_run([](BatchOperands* o) { o->v_strides.row = std::int64_t{1} << 31; });
  bad_run([](BatchOperands* o) { o->k_strides.row = 0; });
  bad_run([](BatchOperands* o) { o->k_pages = -1; });
  if (plan.info().config.find("wgmma") != std::string::npos) {
    // Tensor maps copy the keys of requests with many queries.
    bad_run([](BatchOperands* o) { o->k_strides.head = -o->k_strides.head; });
    bad_run([](BatchOperands* o) { o->v_strides.page = std::int64_t{1} << 39; });
    bad_run([](BatchOperands* o) { o->q_strides.head = 0; });
    // The stride is below 2^39, but the stride from group to group is not.
    BatchOperands apart = step.operands();
    apart.q_strides.head = std::int64_t{1} << 38;
    CHECK_THROWS_WITH_AS(plan.run(nullptr, apart, step.workspace()),
                         doctest::Contains("the head group stride of Q is 549755813888"), Error);
  }
  bad_run([](BatchOperands* o) { o->state_in.acc = o->lse; });
  bad_run([](BatchOperands* o) { o->o = const_cast<void*>(o->v); });
  bad_run([](BatchOperands* o) { o->lse = static_cast<float*>(o->o); });
  CHECK_THROWS_AS(plan.prepare(nullptr, step.metadata(), nullptr), Error);
  CHECK_THROWS_AS(plan.run(nullptr, step.operands(), nullptr), Error);
}

}  // namespace
