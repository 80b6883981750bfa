// Batches that see different keys, run on the device and compared with the oracle.

#include <string>
#include <vector>

#include "annulus/types.h"
#include "attention/on_device.h"
#include "base/random.h"
#include "pattern/mask_code.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

bool is_hopper() { return device().info().architecture == "sm_90a"; }

// Configurations of the families that the device supports: one or two heads per CTA, clusters, and
// one or more stages.
std::vector<std::string> configs() {
  if (is_hopper()) {
    return {"", "wgmma m128 n64 w8 s2 b2", "wgmma m64 n64 w8 s2 b2 h2", "mma m64 n64 w4 s2 x3"};
  }
  return {"", "mma m64 n64 w4 s2 x3", "mma m128 n64 w4 s2 x2"};
}

TEST_CASE("each batch sees its own expression") {
  const char* const texts[] = {
      "batches(causal, window(64, 0))",
      "batches(causal, window(64, 0), dense)",
      "batches(heads(causal, window(30, 30)), sink(50))",
      "heads(batches(causal, dense), sink(9) | window(20, 0), batches(sink(3), causal, dense))",
      "~batches(causal, ~window(9, 70)) | keys(0, 20)",
      "causal & batches(documents([0, 40, 170]), documents([0, 100]), random(2, 3, 32))",
      "batches(dense, ~dense)",  // no batch of the second kind sees any key
      "batches(segment(50, 2), natten(12, 16, 3) | global([5, 99]))",
      "sum(batches(causal, dense), window(9, 0))",
  };
  std::uint64_t seed = 500;
  for (const char* text : texts) {
    for (const std::int64_t batch : {1, 2, 3, 5}) {
      Problem problem = problem_of(190, 220, 64, 64, Pattern::parse(text));
      problem.batch = batch;
      problem.heads = 4;
      problem.kv_heads = 2;
      CAPTURE(text);
      CAPTURE(batch);
      const Case c = test::make_case(problem, seed++);
      check(c, test::run_case(device(), c));
    }
  }
}

// `text` with every % replaced by i, joined for i in [first, last).
std::string chain(const std::string& text, const std::string& join, int first, int last) {
  std::string all;
  for (int i = first; i < last; ++i) {
    if (i > first) all += join;
    for (const char c : text) all += c == '%' ? std::to_string(i) : std::string(1, c);
  }
  return all;
}

TEST_CASE("many parts that are alike but for their numbers share one text") {
  const std::string texts[] = {
      "batches(" + chain("window(%, 3)", ", ", 1, 13) + ")",  // compares positions only
      "heads(" + chain("causal & documents([%, 10%])", ", ", 10, 20) + ")",
      "head_groups(2, " + chain("global([%, 1%])", ", ", 10, 20) + ")",
      "causal & " + chain("~dilated(%)", " & ", 2, 40),
      chain("keys(%, 1%)", " | ", 10, 30) + " | window(4, 0)",
      "batches(" +
          chain("heads(" + chain("sink(1%) | segment(20, 2)", ", ", 2, 12) + ")", ", ", 0, 9) + ")",
  };
  std::uint64_t seed = 550;
  for (const std::string& text : texts) {
    CAPTURE(text);
    Problem problem = problem_of(130, 190, 64, 64, Pattern::parse(text));
    problem.batch = 2;
    problem.heads = problem.kv_heads = 11;
    CHECK(pattern::emit(problem.pattern, 32, {11, {0, 130}, problem.context()}).calls <= 3);
    const Case c = test::make_case(problem, seed++);
    check(c, test::run_case(device(), c));
  }
}

TEST_CASE("batches that differ are what they are alone, bit for bit, in every configuration") {
  for (const std::string& config : configs()) {
    CAPTURE(config);
    Problem problem =
        problem_of(200, 260, 64, 64, batches({causal(), window(70, 3) | sink(5), sink(130)}));
    problem.batch = 4;
    problem.heads = 4;
    problem.kv_heads = 2;
    PlanOptions options;
    options.config = config;
    const Case c = test::make_case(problem, 510);
    const DeviceAnswer together = test::run_case(device(), c, options);
    check(c, together);
    if (config.empty()) continue;  // other configurations may be chosen for one batch
    // Runs the same operands with one of the expressions for all batches. The batches that had this
    // expression before must have the same answer.
    for (std::int64_t turn = 0; turn < 3; ++turn) {
      Case one = c;
      one.problem.pattern = problem.pattern.of_batch(turn);
      const DeviceAnswer answer = test::run_case(device(), one, options);
      for (std::int64_t batch = turn; batch < problem.batch; batch += 3) {
        for (std::int64_t row = 0; row < problem.seq_q; ++row) {
          for (std::int64_t head = 0; head < problem.heads; ++head) {
            const std::int64_t at = answer.o.offset(batch, row, head);
            for (std::int64_t d = 0; d < problem.dim_v; ++d) {
              const auto i = static_cast<std::size_t>(at + d);
              if (answer.o.bits[i] != together.o.bits[i]) {
                FAIL("batch " << batch << " row " << row << " head " << head);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("tiles that a batch does not see are skipped for it") {
  Problem problem = problem_of(256, 512, 64, 64, batches({dense(), sink(64)}));
  problem.batch = 4;
  problem.heads = 2;
  const Plan plan = device().plan(problem);
  Problem first = problem, second = problem;
  first.pattern = dense();
  second.pattern = sink(64);
  PlanOptions alike;
  alike.config = plan.info().config;  // a single batch may get another configuration
  CHECK(plan.info().block_density.value ==
        doctest::Approx((device().plan(first, alike).info().block_density.value +
                         device().plan(second, alike).info().block_density.value) /
                        2));
  if (!device().info().simulated) return;
  // The matrix products that were executed, whatever the plan reports.
  const auto products = [&](const Pattern& pattern, std::int64_t batch) {
    Problem asked = problem;
    asked.pattern = pattern;
    asked.batch = batch;
    PlanOptions options;
    options.config = configs()[1];
    const Case c = test::make_case(asked, 530);
    device().counters(true);
    test::run_case(device(), c, options);
    for (const auto& [name, count] : device().counters()) {
      if (name == "matrix_flop") return count;
    }
    return decltype(device().counters()[0].second){0};
  };
  const std::int64_t made = products(problem.pattern, 4);
  CHECK(made > 0);
  CHECK(made == products(dense(), 2) + products(sink(64), 2));
}

TEST_CASE("layouts, states and split rows take batches too") {
  std::uint64_t seed = 540;
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 32;
  layout.seq_q = 200;
  layout.seq_k = 640;
  layout.indptr.push_back(0);
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    for (std::int64_t column = row % 3; column < layout.columns(); column += 1 + row % 4) {
      layout.indices.push_back(static_cast<std::int32_t>(column));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  const std::vector<Pattern> patterns = {
      batches({blocks(layout), causal()}),
      batches({blocks(layout) & causal(), ~blocks(layout), window(31, 0) | global(16)}),
      heads({batches({dense(), sink(70)}), causal()}),
  };
  int split = 0;
  for (const Pattern& pattern : patterns) {
    for (const int parts : {1, 3, 4}) {
      Problem problem = problem_of(200, 640, 64, 64, pattern);
      problem.batch = 3;
      problem.heads = 4;
      problem.kv_heads = 2;
      if (seed % 3 == 1) problem.carry_in = true;
      if (seed % 3 == 2) problem.score.sink_logit = {0.5, -1};
      PlanOptions options;
      options.config = configs().back();
      options.kv_splits = parts;
      CAPTURE(pattern.to_string());
      CAPTURE(parts);
      const Case c = test::make_case(problem, seed++);
      const Plan plan = device().plan(problem, options);
      DeviceCase memory(device(), c);
      const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
      plan.run(nullptr, memory.operands(), workspace.data());
      check(c, memory.answer());
      split += plan.workspace_bytes() > 0;
    }
  }
  CHECK(split >= 6);
}

TEST_CASE("lengths of next to nothing take batches") {
  const std::int64_t lengths[][2] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 70}, {70, 1}};
  for (const auto& [seq_q, seq_k] : lengths) {
    for (const std::int64_t batch : {0, 1, 2, 4}) {
      Problem problem =
          problem_of(seq_q, seq_k, 64, 64, batches({causal(), documents({0, 3}), ~dense()}));
      problem.batch = batch;
      CAPTURE(seq_q);
      CAPTURE(seq_k);
      CAPTURE(batch);
      const Case c = test::make_case(problem, 560);
      check(c, test::run_case(device(), c));
    }
  }
}

TEST_CASE("batches of a second launch go on where those of the first one ended") {
  // A launch has 65535 batches, an odd number of them.
  Problem problem = problem_of(1, 2, 32, 32, batches({keys(0, 1), ~dense()}));
  problem.batch = 65535 + 3;
  const Case c = test::make_case(problem, 565);
  const Plan plan = device().plan(problem);
  CHECK(plan.info().launches == 2);
  check(c, test::run_case(device(), c));
}

TEST_CASE("random problems whose batches differ give the oracle's answer") {
  base::Random random(570);
  int run = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Case c = test::random_case(571, i, {.max_length = 200});
    Problem problem = c.problem;
    if (problem.pattern.branches().size() > 1) continue;
    problem.batch = 1 + random.below(5);
    const auto other = [&] {
      return test::random_pattern(random, problem.seq_q, problem.seq_k, problem.heads, 2);
    };
    problem.pattern = random.below(2) == 0
                          ? batches({problem.pattern, other()})
                          : heads({batches({problem.pattern, causal(), other()}), dense()});
    try {  // an expression may have only one layout
      pattern::emit(problem.pattern, 32, {problem.heads, {}, problem.context()});
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::kUnsupported);
      continue;
    }
    ++run;
    const Case made = test::make_case(problem, 572 + i);
    CAPTURE(made.text);
    check(made, test::run_case(device(), made));
  }
  CHECK(run >= 30);
}

}  // namespace
