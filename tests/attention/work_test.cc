// The limit of work for planning. Hostile problems are rejected within the limit, or at once if an
// estimate suffices. Ordinary problems are far from the limit.
#include "base/work.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "annulus/types.h"
#include "attention/plan/plan.h"
#include "attention/run/branched_forward.h"
#include "attention/tiles/tile_counts.h"

namespace {

using namespace annulus;

const attention::DeviceLimits kA100 = {{80, '\0'}, 108, 163 * 1024};

Problem problem_of(const std::string& pattern, std::int64_t seq, std::int64_t heads = 1,
                   std::int64_t batch = 1) {
  Problem problem;
  problem.batch = batch;
  problem.heads = problem.kv_heads = heads;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse(pattern);
  return problem;
}

void plan_of(const Problem& problem) {
  validate(problem);
  attention::make_branch_plans(problem, attention::choose_config(problem, kA100), kA100);
}

// The error of planning within a limit, and the steps that were made.
struct Refused {
  ErrorCode code{0};
  std::string text;
  std::int64_t steps = 0;
};

Refused refused(const Problem& problem, const WorkLimit& limit = {}) {
  Refused result;
  const base::Work work(limit, "planning");
  try {
    plan_of(problem);
  } catch (const Error& error) {
    result.code = error.code();
    result.text = error.what();
  }
  result.steps = work.steps();
  return result;
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

// `count` parts that all differ, and so share no text.
std::string different_parts(int count) {
  std::string all;
  for (int i = 1; i <= count; ++i) {
    if (i > 1) all += " | ";
    all += "(causal";
    for (int digits = i; digits > 0; digits /= 2) {
      all += digits % 2 == 0 ? " & dilated(3)" : " & strided(7, 2, 16)";
    }
    all += ")";
  }
  return all;
}

// A sum of tanh(score * i) for i in [first, last), bracketed so that it does not nest deep.
std::string balanced_sum(int first, int last) {
  if (last - first == 1) return "tanh(score * " + std::to_string(first) + ")";
  const int middle = (first + last) / 2;
  return "(" + balanced_sum(first, middle) + " + " + balanced_sum(middle, last) + ")";
}

TEST_CASE("hostile problems end within the default limit") {
  const std::string lists = "[" + chain("%", ",", 0, 100'000) + "]";
  const Problem hostile[] = {
      problem_of(chain("~dilated(%)", " & ", 2, 1000), 4096),
      problem_of(chain("segment(%, 3)", " | ", 64, 463), 4096),
      problem_of("batches(" + chain("window(%, 0)", ",", 1, 500) + ")", 4096, 1, 500),
      problem_of("causal & strided(8, 4, 64)", 4'194'304, 4),
      problem_of("random(65536, 1, 1)", 1 << 20),
      problem_of("vertical_slash(" + lists + ", [" + chain("%000", ",", 1, 500) + "])", 500'000),
      problem_of("global([" + chain("%00", ",", 1, 10'000) + "])", 1 << 20),
      problem_of("heads(" + chain("causal & dilated(%)", ",", 2, 400) + ")", 4096, 400),
      problem_of(different_parts(110), 256),
  };
  for (const Problem& problem : hostile) {
    const std::string pattern = problem.pattern.to_string().substr(0, 50);
    CAPTURE(pattern);
    const Refused result = refused(problem);
    CAPTURE(result.text);
    CHECK((result.code == ErrorCode{0} || result.code == ErrorCode::kLimit ||
           result.code == ErrorCode::kUnsupported));
    CHECK(result.steps < kDefaultWorkSteps + kDefaultWorkSteps / 4);
  }
}

TEST_CASE("what an estimate tells is refused before the work is done") {
  // Texts that NVRTC would compile for a long time.
  Refused result = refused(problem_of(different_parts(110), 256));
  CHECK(result.code == ErrorCode::kLimit);
  CHECK(result.text.find("compiling a mask of 760 calls") != std::string::npos);
  CHECK(result.steps < kDefaultWorkSteps / 100);
  Problem scored = problem_of("causal", 1024);
  scored.score = Score::parse("score_mod(" + balanced_sum(1, 200) + ")");
  result = refused(scored);
  CHECK(result.code == ErrorCode::kLimit);
  CHECK(result.text.find("a score of 994 operations") != std::string::npos);
  // Lists with more tiles than any list may have, and with more than the limit permits.
  result = refused(problem_of("causal & strided(8, 4, 64)", kMaxPosition));
  CHECK(result.code == ErrorCode::kUnsupported);
  CHECK(result.text.find("more than 536870912 tiles") != std::string::npos);
  CHECK(result.steps < kDefaultWorkSteps / 2);
  result = refused(problem_of("causal & strided(64, 4, 64)", 1 << 25));
  CHECK(result.code == ErrorCode::kLimit);
  CHECK(result.text.find("the list of tiles would take about") != std::string::npos);
  CHECK(result.steps < kDefaultWorkSteps / 2);
}

TEST_CASE("a few long rows among many do not make an estimate too large") {
  // The list without a limit, and with a limit of twice its size.
  std::string starts = "global([";
  for (int i = 0; i < 40; ++i) starts += std::to_string(i * 100'003 + 7) + (i < 39 ? "," : "])");
  const Problem problem = problem_of("causal & (window(100, 0) | " + starts + ")", 1 << 22);
  const base::Work work({.steps = 0}, "planning");
  plan_of(problem);
  const std::int64_t steps = work.steps();
  std::thread([&] { CHECK(refused(problem, {.steps = steps}).code == ErrorCode{0}); }).join();
}

TEST_CASE("ordinary problems are far from the default limit") {
  for (const PresetInfo& preset : presets()) {
    CAPTURE(preset.name);
    const Problem problem = problem_of(std::string(preset.expression), 65536, 12);
    const Refused result = refused(problem);
    CAPTURE(result.text);
    CHECK(result.code == ErrorCode{0});
    CHECK(result.steps < kDefaultWorkSteps / 2);
  }
}

TEST_CASE("a plan takes the same number of steps each time") {
  const Problem problem = problem_of("causal & (strided(9, 2, 32) | random(3, 1, 64))", 30'000, 3);
  const Refused first = refused(problem), second = refused(problem);
  CHECK(first.steps == second.steps);
  CHECK(refused(problem, {.steps = first.steps}).code == ErrorCode{0});
  CHECK(refused(problem, {.steps = first.steps - 20'000}).code == ErrorCode::kLimit);
}

TEST_CASE("a flag ends planning and counting from another thread") {
  const Problem problem = problem_of("causal & strided(8, 4, 64)", 8'388'608, 4);
  const auto ended = [&](const auto& call) {
    std::atomic<bool> flag{false};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      flag = true;
    });
    ErrorCode code{0};
    try {
      call(WorkLimit{.steps = 0, .cancelled = [&] { return flag.load(); }});
    } catch (const Error& error) {
      code = error.code();
    }
    other.join();
    return code == ErrorCode::kCancelled;
  };
  CHECK(ended([&](const WorkLimit& limit) {
    const base::Work work(limit, "planning");
    plan_of(problem);
  }));
  CHECK(ended([&](const WorkLimit& limit) {
    const base::Work work(limit, "counting");
    attention::count_tiles(problem, 64, 64);
  }));
  CHECK(ended([&](const WorkLimit& limit) { pair_density(problem, limit); }));
}

}  // namespace
