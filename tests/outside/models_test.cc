// Published models, as a program of another project tunes for them.

#include "annulus/models.h"

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
  // 512, 2048 and 8192 tokens, at once and as keys of one token.
  CHECK(problems_of(*plain).size() == 6);
  const auto some = find_model("gemma-2-9b"), all = find_model("mistral-7b-v0.1");
  REQUIRE(some);
  REQUIRE(all);
  const auto windows = [](const Model& model, std::int64_t keys) {
    int causal = 0, windowed = 0;
    for (const Problem& problem : problems_of(model)) {
      if (problem.seq_k != keys || problem.seq_q != keys) continue;
      const std::string text = problem.pattern.to_string();
      (text == "causal" ? causal : windowed) += 1;
      if (text != "causal") CHECK(text.find("window(4095, 0)") != std::string::npos);
    }
    return 10 * causal + windowed;
  };
  CHECK(windows(*some, 2048) == 10);
  CHECK(windows(*some, 8192) == 11);
  CHECK(windows(*all, 2048) == 10);
  CHECK(windows(*all, 8192) == 1);
  CHECK(problems_of(*some).front().score.softcap == 50);
}

}  // namespace
}  // namespace annulus
