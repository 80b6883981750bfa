// Published models. A program of another project tunes for these models.

#include "annulus/kernels.h"

#include <algorithm>
#include <set>

#include "outside/outside.h"

namespace annulus {
namespace {

TEST_CASE("every model of the table has valid problems of its numbers") {
  std::set<std::string> names;
  for (const Model& model : known_models()) {
    CAPTURE(model.name);
    CHECK(names.insert(model.name).second);
    CHECK(model.repository.find('/') != std::string::npos);
    CHECK((model.windowed == Model::Layers::kNone) == (model.window == 0));
    CHECK(model.heads % model.kv_heads == 0);
    const std::vector<Problem> problems = problems_of(model);
    CHECK(problems.size() >= 4);
    for (const Problem& problem : problems) {
      CHECK_NOTHROW(validate(problem));
      CHECK(problem.heads == model.heads);
      CHECK(problem.kv_heads == model.kv_heads);
      CHECK(problem.dim_qk == model.dim_qk);
      CHECK(problem.seq_k <= std::min<std::int64_t>(model.context, 32768));
      CHECK((problem.seq_q == 1 || problem.seq_q == problem.seq_k));
    }
  }
  CHECK(names.size() >= 30);
}

TEST_CASE("a model's problems have its window and its soft-cap") {
  CHECK_FALSE(find_model("no such model"));
  const auto plain = find_model("llama-3-8b");
  REQUIRE(plain);
  std::vector<std::int64_t> lengths;
  for (const Problem& problem : problems_of(*plain)) {
    lengths.push_back(problem.seq_q == 1 ? -problem.seq_k : problem.seq_k);
  }
  CHECK(lengths == std::vector<std::int64_t>{512, 1024, 4096, -512, -2048, -8192});
  const auto some = find_model("gemma-2-9b"), all = find_model("mistral-7b-v0.1");
  REQUIRE(some);
  REQUIRE(all);
  // A window that holds the whole sequence counts as no window. If all layers have a window, no
  // problem is without one.
  const auto count = [](const Model& model, bool windowed, auto is_length) {
    return std::ranges::count_if(problems_of(model), [&](const Problem& problem) {
      const std::string text = problem.pattern.to_string();
      CHECK((text == "causal" || text.find("window(4095, 0)") != std::string::npos));
      return (text != "causal") == windowed && is_length(problem.seq_k);
    });
  };
  const auto is_short = [](std::int64_t keys) { return keys <= 4096; };
  const auto is_long = [](std::int64_t keys) { return keys > 4096; };
  for (const Model& model : {*some, *all}) {
    CHECK(count(model, true, is_short) == 0);
    CHECK(count(model, true, is_long) > 0);
    CHECK(count(model, false, is_short) > 0);
  }
  CHECK(count(*some, false, is_long) > 0);
  CHECK(count(*all, false, is_long) == 0);
  CHECK(problems_of(*some).front().score.softcap == 50);
  CHECK(problems_of(*some).front().score.sink_logit.empty());
  const auto sinks = find_model("gpt-oss-20b");
  REQUIRE(sinks);
  CHECK(problems_of(*sinks).size() == 38);
  for (const Problem& problem : problems_of(*sinks)) {
    CHECK(problem.score.sink_logit == std::vector<double>{0});
  }
  Model wrong = *plain;
  wrong.kv_heads = 0;
  test::check_fails(ErrorCode::kInvalidArgument, "kv_heads", [&] { problems_of(wrong); });
}

}  // namespace
}  // namespace annulus
