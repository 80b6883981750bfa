#include "annulus/kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include "tuned/shape_key.h"

namespace annulus::inline v0 {
namespace {

using tuned::ShapeKey;

// Every 64th length between these two is considered: the share of the blocks that a query sees
// depends on whether the last block of 128 is full, and hardly on how full it is.
constexpr std::int64_t kShortest = 256, kLongest = 32768, kStep = 64;

// The patterns of the layers of a model.
class Patterns {
 public:
  explicit Patterns(const Model& model) : model_(model) {
    if (model.windowed == Model::Layers::kNone) return;
    windowed_ = Pattern::parse(fmt::format("causal & window({},0)", model.window - 1));
  }

  // Calls body(pattern) for each pattern that layers have if there is this number of keys.
  template <typename Body>
  void each(std::int64_t keys, Body body) const {
    const bool cuts = model_.windowed != Model::Layers::kNone && model_.window < keys;
    if (!cuts || model_.windowed == Model::Layers::kSome) body(causal_);
    if (cuts) body(windowed_);
  }

 private:
  const Model& model_;
  Pattern causal_ = causal(), windowed_;
};

Problem problem_for(const Model& model, std::int64_t queries, std::int64_t keys) {
  Problem problem;
  problem.heads = model.heads;
  problem.kv_heads = model.kv_heads;
  problem.seq_q = queries;
  problem.seq_k = keys;
  problem.dim_qk = model.dim_qk;
  problem.dim_v = model.dim_v;
  problem.score.softcap = model.softcap;
  if (model.sinks) problem.score.sink_logit = {0};
  return problem;
}

// Whether the result of one problem is meant for another problem of the same kind: their lengths
// differ by a factor of two at most. This holds even if only the keys differ, although a plan would
// then take results from farther away.
bool serves(const ShapeKey& a, const ShapeKey& b) {
  return std::abs(a.keys - b.keys) <= tuned::kMaxDistance / 2;
}

// Chooses some of these problems, which are in order of length, so that their results serve all of
// them. For the shortest problem that is not served yet, it chooses the problem with the roundest
// length among those that serve it.
std::vector<Problem> chosen_of(const std::vector<Problem>& all) {
  std::vector<ShapeKey> keys;
  for (const Problem& problem : all) keys.push_back(tuned::shape_key(problem));
  const auto roundness = [&](std::size_t i) {
    return std::countr_zero(static_cast<std::uint64_t>(all[i].seq_k));
  };
  std::vector<bool> is_served(all.size()), is_chosen(all.size());
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (is_served[first]) continue;
    std::size_t best = first;
    std::vector<std::size_t> kind;
    for (std::size_t i = first; i < all.size(); ++i) {
      if (!tuned::length_distance(keys[i], keys[first])) continue;
      kind.push_back(i);
      if (serves(keys[i], keys[first]) && roundness(i) >= roundness(best)) best = i;
    }
    is_chosen[best] = true;
    for (const std::size_t i : kind) {
      if (serves(keys[best], keys[i])) is_served[i] = true;
    }
  }
  std::vector<Problem> chosen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_chosen[i]) chosen.push_back(all[i]);
  }
  return chosen;
}

}  // namespace

std::vector<Model> known_models() {
  using enum Model::Layers;
  return {
#define MODEL(...) {__VA_ARGS__},
#include "api/models.def"
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
  const Patterns patterns(model);
  const auto of = [&](bool prefill) {
    std::vector<Problem> all;
    const std::int64_t longest = std::min(kLongest, model.context);
    for (std::int64_t keys = kShortest; keys <= longest; keys += kStep) {
      const Problem problem = problem_for(model, prefill ? keys : 1, keys);
      if (all.empty()) validate(problem);
      patterns.each(keys, [&](const Pattern& pattern) {
        all.push_back(problem);
        all.back().pattern = pattern;
      });
    }
    return chosen_of(all);
  };
  std::vector<Problem> problems = of(true);
  if (model.dim_qk != model.dim_v) return problems;
  std::ranges::move(of(false), std::back_inserter(problems));
  return problems;
}

}  // namespace annulus::inline v0
