#include "annulus/models.h"

#include <fmt/core.h>

#include <algorithm>

namespace annulus::inline v0 {
namespace {

// Lengths are four times apart: a result of one serves those of half to twice as much.
constexpr std::int64_t kShortest = 512, kLongest = 32768, kFactor = 4;

std::vector<Pattern> patterns_of(const Model& model, std::int64_t keys) {
  std::vector<Pattern> patterns;
  const bool cuts = model.windowed != Model::Layers::kNone && model.window < keys;
  if (!cuts || model.windowed == Model::Layers::kSome) patterns.push_back(Pattern::parse("causal"));
  if (cuts) {
    patterns.push_back(Pattern::parse(fmt::format("causal & window({},0)", model.window - 1)));
  }
  return patterns;
}

Problem problem_for(const Model& model, std::int64_t queries, std::int64_t keys) {
  Problem problem;
  problem.heads = model.heads;
  problem.kv_heads = model.kv_heads;
  problem.seq_q = queries;
  problem.seq_k = keys;
  problem.dim_qk = model.dim_qk;
  problem.dim_v = model.dim_v;
  if (model.softcap > 0) problem.score = Score::parse(fmt::format("softcap({})", model.softcap));
  return problem;
}

}  // namespace

std::vector<Model> known_models() {
  using enum Model::Layers;
  return {
#define MODEL(...) {__VA_ARGS__},
#include "autotune/models.def"
#undef MODEL
  };
}

std::optional<Model> find_model(std::string_view name) {
  for (Model& model : known_models()) {
    if (model.name == name) return std::move(model);
  }
  return std::nullopt;
}

std::vector<Problem> problems_of(const Model& model) {
  std::vector<Problem> problems;
  const auto add = [&](std::int64_t queries, std::int64_t keys) {
    for (Pattern& pattern : patterns_of(model, keys)) {
      problems.push_back(problem_for(model, queries, keys));
      problems.back().pattern = std::move(pattern);
    }
  };
  const std::int64_t longest = std::min(kLongest, model.context);
  for (std::int64_t tokens = kShortest; tokens <= longest; tokens *= kFactor) add(tokens, tokens);
  if (model.dim_qk != model.dim_v) return problems;
  for (std::int64_t keys = kShortest; keys <= longest; keys *= kFactor) add(1, keys);
  return problems;
}

}  // namespace annulus::inline v0
