// The problems of published models, and the problems that their results serve.

#include "annulus/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "annulus/problem.h"
#include "tuned/shape_key.h"

namespace annulus::autotune {
namespace {

// Whether a length is tested: all short lengths, the lengths around the ends of blocks, and some
// others.
bool is_tried(std::int64_t length) {
  const std::int64_t in_block = length % 128;
  return length < 1024 || in_block <= 1 || in_block == 127 || length % 19 == 0;
}

TEST_CASE("results of a model's problems serve every length, with a window and without") {
  std::set<std::tuple<std::int64_t, std::int64_t, Model::Layers>> seen;
  for (const Model& model : known_models()) {
    if (!seen.emplace(model.context, model.window, model.windowed).second) continue;
    CAPTURE(model.name);
    std::vector<tuned::ShapeKey> keys;
    for (const Problem& problem : problems_of(model)) keys.push_back(tuned::shape_key(problem));
    const Pattern windowed = Pattern::parse(
        "causal & window(" + std::to_string(std::max<std::int64_t>(model.window, 1) - 1) + ", 0)");
    int unserved = 0;
    const auto check = [&](Problem problem, const Pattern& pattern) {
      problem.pattern = pattern;
      const tuned::ShapeKey wanted = tuned::shape_key(problem);
      const bool served = std::ranges::any_of(keys, [&](const tuned::ShapeKey& key) {
        return tuned::length_distance(key, wanted).value_or(tuned::kMaxDistance + 1) <=
                   tuned::kMaxDistance &&
               std::abs(key.keys - wanted.keys) <= 2;
      });
      if (served) return;
      ++unserved;
      CAPTURE(problem.seq_q);
      CAPTURE(problem.seq_k);
      CAPTURE(pattern.to_string());
      CHECK(served);
    };
    const std::int64_t longest = std::min<std::int64_t>(model.context, 32768);
    for (std::int64_t length = 256; length <= longest && unserved < 3; ++length) {
      if (!is_tried(length)) continue;
      Problem problem;
      problem.heads = model.heads;
      problem.kv_heads = model.kv_heads;
      problem.dim_qk = model.dim_qk;
      problem.dim_v = model.dim_v;
      problem.score.softcap = model.softcap;
      if (model.sinks) problem.score.sink_logit = {1.5};
      problem.seq_k = length;
      const bool cuts = model.window > 0 && model.window < length;
      for (const bool prefill : {true, false}) {
        if (!prefill && model.dim_qk != model.dim_v) continue;
        problem.seq_q = prefill ? length : 1;
        if (!cuts || model.windowed == Model::Layers::kSome) check(problem, causal());
        if (cuts) check(problem, windowed);
      }
    }
    CHECK(unserved == 0);
  }
}

}  // namespace
}  // namespace annulus::autotune
