#include "tuned/space.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "attention/kernels/family.h"
#include "attention/kernels/mma/config.h"
#include "attention/plan/plan.h"
#include "autotune/tuner.h"
#include "tuned/gpus.h"

namespace annulus::autotune {
namespace {

using attention::Dims;
using attention::KernelConfig;

using test::gpu;

attention::DeviceLimits limits(int number) { return test::limits_of_gpu(number); }

tuned::Space space_of(const Dims& dims, int number, bool simulated = false) {
  return tuned::enumerate(dims, Dtype::kBfloat16, limits(number),
                          attention::pipe_device(gpu(number)), simulated);
}

TEST_CASE("candidates are legal, distinct, and the same on every call") {
  for (const Dims& dims : attention::supported_dims()) {
    for (const int number : {80, 86, 90}) {
      CAPTURE(dims.qk);
      CAPTURE(number);
      const tuned::Space space = space_of(dims, number);
      std::set<std::string> names;
      for (const KernelConfig& config : space.candidates) {
        CHECK_FALSE(tuned::why_outside(config, dims, Dtype::kBfloat16, limits(number)));
        CHECK(names.insert(to_string(config)).second);
      }
      CHECK(space.candidates.size() >= 8);
      CHECK(space_of(dims, number).candidates == space.candidates);
    }
  }
}

TEST_CASE("what ships lies in the space wherever it is legal") {
  attention::DeviceLimits hopper = limits(90);
  hopper.arch.feature = 'a';
  int wgmma = 0;
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    const Dtype dtype =
        shipped.config.family->element_bytes == 1 ? Dtype::kFloat8E4M3 : Dtype::kBfloat16;
    for (const attention::DeviceLimits& of : {limits(80), limits(86), limits(90), hopper}) {
      if (attention::why_not(shipped.config, shipped.dims, of)) continue;
      const std::string name = to_string(shipped.config);
      CAPTURE(name);
      CAPTURE(of.arch.number);
      CHECK_FALSE(tuned::why_outside(shipped.config, shipped.dims, dtype, of));
      // Other families may be used instead.
      if (shipped.config.family == &attention::mma_family) continue;
      ++wgmma;
      const tuned::Space space =
          tuned::enumerate(shipped.dims, dtype, of, attention::pipe_device(gpu(90)), false);
      CHECK(std::ranges::count(space.candidates, shipped.config) == 1);
    }
  }
  CHECK(wgmma > 20);
}

TEST_CASE("the dtype of the operands decides the family") {
  attention::DeviceLimits hopper = limits(90);
  hopper.arch.feature = 'a';
  const auto space_for = [&](Dtype dtype) {
    return tuned::enumerate({128, 128}, dtype, hopper, attention::pipe_device(gpu(90)), true);
  };
  const tuned::Space bytes = space_for(Dtype::kFloat8E4M3);
  CHECK(bytes.candidates.size() >= 8);
  for (const KernelConfig& config : bytes.candidates) {
    CHECK(config.family->element_bytes == 1);
    CHECK(tuned::why_outside(config, {128, 128}, Dtype::kBfloat16, hopper));
  }
  for (const KernelConfig& config : space_for(Dtype::kFloat16).candidates) {
    CHECK(config.family->element_bytes != 1);
  }
  CHECK(tuned::enumerate({128, 128}, Dtype::kFloat8E4M3, limits(80),
                         attention::pipe_device(gpu(80)), true)
            .candidates.empty());
}

TEST_CASE("heads and rows share a CTA or a cluster only where the problem lets them") {
  attention::DeviceLimits hopper = limits(90);
  hopper.arch.feature = 'a';
  const auto candidates = [&](std::int64_t kv_heads, const Pattern& pattern) {
    Problem problem;
    problem.heads = 8;
    problem.kv_heads = kv_heads;
    problem.seq_q = problem.seq_k = 4096;
    problem.dim_qk = problem.dim_v = 64;
    problem.pattern = pattern;
    const auto made = candidates_of(target_of(problem, hopper), hopper,
                                    attention::pipe_device(gpu(90)), true, [] { return false; });
    std::set<std::pair<int, int>> shared;  // heads of a CTA, and CTAs of a cluster
    for (const tuned::Trial& trial : made->trials) {
      const attention::CtaShape cta = attention::cta_shape(trial.config);
      shared.insert({cta.heads, cta.cluster});
    }
    CHECK(made->trials.size() > 100);
    return shared;
  };
  using Shared = std::set<std::pair<int, int>>;
  CHECK(candidates(8, causal()) == Shared{{1, 1}});
  CHECK(candidates(8, dense()) == Shared{{1, 1}, {1, 2}});  // rows see the same keys
  CHECK(candidates(4, causal()) == Shared{{1, 1}, {1, 2}, {2, 1}});
  CHECK(candidates(2, causal()) == Shared{{1, 1}, {1, 2}, {2, 1}, {2, 2}});
  CHECK(candidates(4, heads({causal(), window(63, 0)})) == Shared{{1, 1}});
}

// A part with one query head would drop every candidate that packs heads. If the heuristic's choice
// is one of these, nothing could be tuned.
TEST_CASE("every candidate has a plan for every part of a long problem with grouped heads") {
  attention::DeviceLimits hopper = limits(90);
  hopper.arch.feature = 'a';
  int packed = 0;
  struct Heads {
    std::int64_t all, kv;
  };
  for (const auto& [all, kv_heads] :
       {Heads{32, 32}, {32, 16}, {32, 8}, {32, 4}, {32, 1}, {48, 8}, {96, 8}, {36, 12}}) {
    for (const std::int64_t seq_q : {1, 300, 2048, 8192}) {
      for (const Pattern& pattern : {causal(), causal() & (window(511, 0) | sink(16))}) {
        Problem problem;
        problem.heads = all;
        problem.kv_heads = kv_heads;
        problem.seq_q = seq_q;
        problem.seq_k = seq_q == 300 ? 300 : 8192;
        problem.dim_qk = problem.dim_v = 128;
        problem.pattern = pattern;
        const auto made =
            candidates_of(target_of(problem, hopper), hopper, attention::pipe_device(gpu(90)), true,
                          [] { return false; });
        const std::vector<Problem> parts = parts_for(target_of(problem, hopper), *made, 1.5e6);
        for (const tuned::Trial& trial : made->trials) {
          packed += attention::cta_shape(trial.config).packed_heads() > 1;
          for (const Problem& part : parts) {
            const attention::Choice choice{trial.config, "a candidate", {}};
            CAPTURE(all);
            CAPTURE(kv_heads);
            CAPTURE(seq_q);
            CHECK_NOTHROW(attention::make_plan(part, choice, hopper));
          }
        }
      }
    }
  }
  CHECK(packed > 1000);
}

TEST_CASE("numbers of resident CTAs that change nothing are left out") {
  for (const bool simulated : {false, true}) {
    const tuned::Space space = space_of({64, 64}, 80, simulated);
    CHECK(space.equal > 0);
    std::set<std::pair<std::string, int>> seen;
    for (const KernelConfig& candidate : space.candidates) {
      attention::MmaConfig config = attention::mma_config(candidate);
      const int registers = simulated ? 0 : attention::footprint(candidate, {64, 64}).max_registers;
      CHECK(attention::resident_ctas(attention::pipe_device(gpu(80)), candidate, {64, 64}) >=
            config.resident);
      config.resident = 1;
      CHECK(seen.insert({to_string(config), registers}).second);
    }
  }
  CHECK(space_of({64, 64}, 80, true).candidates.size() < space_of({64, 64}, 80).candidates.size());
}

TEST_CASE("what may spill is tried on real devices, and never chosen without") {
  for (const Dims& dims : attention::supported_dims()) {
    const auto may_spill = [&](const KernelConfig& config) {
      return attention::why_spills(config, dims, limits(80).arch).has_value();
    };
    CAPTURE(dims.qk);
    CHECK(std::ranges::none_of(space_of(dims, 80, true).candidates, may_spill));
    const auto tried = std::ranges::count_if(space_of(dims, 80).candidates, may_spill);
    CHECK(tried > 0);
    for (const KernelConfig& config : space_of(dims, 80).candidates) {
      if (may_spill(config))
        CHECK_FALSE(tuned::why_outside(config, dims, Dtype::kBfloat16, limits(80)));
    }
    Problem problem;
    problem.dim_qk = dims.qk;
    problem.dim_v = dims.v;
    for (const std::int64_t block : {16, 48, 112, 128}) {
      problem.seq_q = problem.seq_k = 32 * block;
      problem.pattern = annulus::random(8, 1, block);
      CHECK_FALSE(may_spill(attention::choose_config(problem, limits(80)).config));
    }
  }
  // FlashAttention-2 uses these tiles at head dim 128.
  const tuned::Space space = space_of({128, 128}, 80);
  const KernelConfig wide = attention::MmaConfig{128, 64, 4, 1, false, 2};
  CHECK(std::ranges::count(space.candidates, wide) == 1);
}

TEST_CASE("what lies outside is refused with the reason") {
  const auto says = [](const attention::MmaConfig& config, const char* part) {
    const auto reason = tuned::why_outside(config, {64, 64}, Dtype::kBfloat16, limits(80));
    return reason && reason->find(part) != std::string::npos;
  };
  CHECK(says({.tile_columns = 72}, "72 columns"));
  CHECK(says({.tile_columns = 128, .resident = 8}, "leave each thread 64 registers"));
  CHECK(says({.resident = 9}, "9 resident CTAs"));
  CHECK(says({.tile_rows = 256, .tile_columns = 128, .warps = 8, .stages = 4, .resident = 5}, ""));
  CHECK_FALSE(tuned::why_outside(attention::MmaConfig{}, {64, 64}, Dtype::kBfloat16, limits(80)));
}

}  // namespace
}  // namespace annulus::autotune
