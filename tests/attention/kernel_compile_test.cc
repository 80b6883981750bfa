// Compiles the whole table with NVRTC and ptxas. No shipped kernel may spill, use local memory, or
// make ptxas warn about serialised instructions.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/family.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/mma/config.h"
#include "attention/tiles/kv_split.h"
#include "base/thread_pool.h"
#include "support/nvrtc.h"
#include "support/options.h"
#include "support/recorded_usages.h"

namespace annulus::attention {
namespace {

using kernels::Positions;

struct Case {
  ShippedConfig shipped;
  KernelFeatures features;
  jit::Arch arch;
  std::string outcome;  // empty if the kernel is right
};

KernelFeatures plain(const Dims& dims, Dtype dtype) {
  return {.dims = dims,
          .dtype = dtype,
          .tile_order = kernels::TileOrder::kBand,
          .mask = "m.causal(q, k)"};
}

// All features at once, which takes the most registers. Block masks come with a list.
KernelFeatures all(const Dims& dims, Dtype dtype, Positions positions) {
  return {.dims = dims,
          .dtype = dtype,
          .score = kernels::Score::kSoftcap,
          .carry_in = true,
          .carry_out = true,
          .positions = positions,
          .mask =
              "m.causal(q, k) & (m.window(0, 1, q, k) | m.global_listed(2, 3, q, k)) & "
              "m.documents(4, 5, q, k) & m.blocks(q, k)"};
}

// The leaves that divide and search, selected by the head, and all features of scores, with the
// records of rows in registers.
KernelFeatures leaves(const Dims& dims, Dtype dtype, Positions positions) {
  return {.dims = dims,
          .dtype = dtype,
          .score = kernels::Score::kSoftcap,
          .alibi = true,
          .bias = true,
          .sink_logit = true,
          .carry_in = true,
          .positions = positions,
          .tile_order = kernels::TileOrder::kRuns,
          .mask =
              "(m.turn(2) == 0 ? (m.natten(0, 1, 2, q, k) & m.random(3, 4, 5, 6, 7, q, k)) : "
              "(m.segment(8, 9, q, k) | m.vertical_slash(10, 11, 12, 13, q, k) | "
              "m.strided(14, 15, 16, q, k) & m.level(17, 18, 19, q, k))) | m.axial(20, 21, q, k) & "
              "!m.dilated(22, q, k)"};
}

// The features that bands of keys can have.
KernelFeatures band(const Dims& dims, Dtype dtype, bool carry_out) {
  return {.dims = dims,
          .dtype = dtype,
          .score = kernels::Score::kAnyScale,
          .sink_logit = !carry_out,
          .carry_in = true,
          .carry_out = carry_out,
          .tile_order = kernels::TileOrder::kBand,
          .mask = "m.causal(q, k) & m.window(0, 1, q, k)"};
}

// A score expression in addition to the other features. One kind is expanded for each element, and
// the other uses every operation.
KernelFeatures modified(KernelFeatures features, bool costly) {
  const auto [score, b, h, q, k] = score_variables();
  const ScoreTable pairs = ScoreTable::reals(std::vector<double>(12, 0.5), 4);
  const ScoreTable buckets = ScoreTable::integers({1, 2, 3});
  const ScoreExpression cheap =
      where((q >= k) & (b < 7), score * sigmoid(score) + 0.5 * (k - q), -1e4);
  const ScoreExpression all_of_them =
      where(~(eq(div(q, 16), mod(k, 7)) | ne(b, h)) & (score <= 3.5) & (score > -7.5),
            pairs(buckets(abs(q - k)), mod(-k, 5)) * exp(min(score, 2.0)) +
                log(max(score, 0.25)) * sigmoid(score),
            sqrt(abs(score)) - floor(log2(1.0 + exp2(-score))) * tanh(score / (2 + h)));
  features.score_mod = score_code(costly ? all_of_them : cheap).structure;
  return features;
}

std::vector<Case> every_case() {
  std::vector<Case> cases;
  // The masks are combined in turn with the other features, so that each is compiled each way for
  // some tile. Block masks have no second segment, and parts of rows have only one segment.
  bool placed = false;
  bool second = false;
  const auto one_or_rows = [&](bool rows) {
    return rows ? Positions::kOfRows : Positions::kOneSegment;
  };
  for (const ShippedConfig& shipped : shipped_configs()) {
    const bool hopper = shipped.reach == Reach::kHopper;
    const jit::Arch large = hopper ? jit::Arch{90, 'a'} : jit::Arch{80, '\0'};
    const jit::Arch small = hopper                           ? large
                            : shipped.reach == Reach::kEvery ? jit::Arch{89, '\0'}
                                                             : jit::Arch{90, '\0'};
    // The planner uses the widest tiles only for bands of scaled scores.
    if (hopper && (cta_shape(shipped.config).warps == 12 || shipped.config.tile_columns > 128)) {
      KernelFeatures whole = band(shipped.dims, Dtype::kFloat16, false);
      whole.split = supports_kv_splits(shipped.config);
      cases.push_back({shipped, whole, large, ""});
      cases.push_back({shipped, band(shipped.dims, Dtype::kBfloat16, true), large, ""});
      // Rings that cut rows into two segments use them too. There the tiles of a row are two runs.
      for (const bool carry_out : {false, true}) {
        KernelFeatures zigzag = band(shipped.dims, Dtype::kBfloat16, carry_out);
        zigzag.positions = Positions::kTwoSegments;
        zigzag.tile_order = kernels::TileOrder::kRuns;
        cases.push_back({shipped, zigzag, large, ""});
      }
      continue;
    }
    // The planner does the same with the widest tile of mma on 8.x.
    if (shipped.config == KernelConfig(MmaConfig{128, 48, 4, 2, false, 2})) {
      for (const jit::Arch arch : {large, small}) {
        KernelFeatures window = band(shipped.dims, Dtype::kFloat16, false);
        window.score = kernels::Score::kPositiveScale;
        window.carry_in = false;
        KernelFeatures carried = plain(shipped.dims, Dtype::kBfloat16);
        carried.carry_out = true;
        window.split = carried.split = supports_kv_splits(shipped.config);
        cases.push_back({shipped, window, arch, ""});
        cases.push_back({shipped, carried, arch, ""});
      }
      continue;
    }
    // The bare kernel uses the fewest registers. On Hopper ptxas schedules it in a special way, and
    // static_proof compares it with a table.
    const bool float8 = shipped.config.family->element_bytes == 1;
    const KernelFeatures masked = all(shipped.dims, Dtype::kFloat16, one_or_rows(placed));
    KernelFeatures searched = leaves(shipped.dims, Dtype::kBfloat16, one_or_rows(!placed));
    searched.split = supports_kv_splits(shipped.config) && placed;
    if (!placed && !float8) {
      if (second) searched.positions = Positions::kTwoSegments;
      second = !second;
    }
    // 8-bit kernels use as many registers as these, so one kernel of the two is enough. One case
    // reads positions, and the next does not.
    if (!float8 || !placed) {
      cases.push_back({shipped, placed ? modified(masked, false) : masked, small, ""});
    }
    if (!float8 || placed) {
      cases.push_back({shipped, placed ? searched : modified(searched, true), large, ""});
    }
    placed = !placed;
  }
  // The configurations that are made for a pattern's blocks, at the most common head dim.
  for (const Family* family : families()) {
    if (family->for_blocks == nullptr) continue;
    const jit::Arch arch = family == &mma_family ? jit::Arch{80, '\0'} : jit::Arch{90, 'a'};
    family->for_blocks([&](std::span<const KernelConfig> made) {
      for (const KernelConfig& config : made) {
        constexpr Dims kDims = {128, 128};
        if (why_illegal(config, kDims, arch)) continue;
        cases.push_back(
            {{kDims, config, {}}, all(kDims, Dtype::kBfloat16, one_or_rows(placed)), arch, ""});
        placed = !placed;
      }
    });
  }
  for (Case& at : cases) {
    // A kernel that draws works uses more registers than one that counts them off.
    const Family& family = family_of(at.shipped.config);
    at.features.draws_work = family.pace(at.shipped.config).deal == Deal::kCounter;
    if (family.element_bytes != 1) continue;
    at.features.dtype_o = at.features.dtype;
    at.features.dtype = Dtype::kFloat8E4M3;
    at.features.head_scales = false;
    at.features.scale_block = 32;  // the most scales that a thread holds
  }
  return cases;
}

test::RecordedUsages& usages(const std::shared_ptr<const abi::NvrtcLibrary>& library) {
  static test::RecordedUsages all(ANNULUS_KERNEL_USAGES, library);
  return all;
}

// Every other case: one of the two cases of a configuration, and each kind over all configurations.
// The next seed takes the other cases, because NVRTC needs minutes for all.
std::vector<Case> half_of(std::vector<Case> cases) {
  std::vector<Case> half;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::uint64_t turn = static_cast<std::uint64_t>(std::popcount(i)) + test::options().seed;
    if (turn % 2 == 1) half.push_back(std::move(cases[i]));
  }
  return half;
}

TEST_CASE("nothing that ships spills or uses local memory") {
  const auto library = test::nvrtc();
  if (!library) return;
  test::RecordedUsages& recorded = usages(library);
  std::vector<Case> cases = every_case();
  if (!recorded.knows_nvrtc() && !test::options().record) cases = half_of(std::move(cases));
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t index, int) {
    Case& at = cases[static_cast<std::size_t>(index)];
    const jit::ResourceUsage usage =
        recorded.of(kernel_spec(at.shipped.config, at.features, at.arch));
    const int residents = cta_shape(at.shipped.config).resident * threads(at.shipped.config);
    const bool good = usage.known && usage.spill_store_bytes == 0 && usage.spill_load_bytes == 0 &&
                      usage.local_bytes == 0 && usage.notes.empty() &&
                      (usage.registers + 7) / 8 * 8 * residents <= 65536;
    if (!good) at.outcome = jit::to_string(usage);
  });
  for (const Case& at : cases) {
    const std::string name = to_string(at.shipped.config);
    CAPTURE(name);
    CAPTURE(at.features.dims.qk);
    CAPTURE(at.features.dims.v);
    CAPTURE(at.features.mask);
    CAPTURE(at.features.score_mod.text);
    CHECK(at.outcome == "");
  }
  recorded.finish();
}

// One configuration of each group that differs only in resident CTAs, with one and with two stages.
// Further stages change nothing. Other head dims do not spill more, and take long to compile.
std::vector<Case> cases_that_may_spill() {
  std::vector<Case> cases;
  const jit::Arch arch = {80, '\0'};
  for (const Dims& dims : {Dims{64, 64}, Dims{128, 128}}) {
    for (const Family* family : families()) {
      family->enumerate([&](std::span<const KernelConfig> alternatives) {
        const KernelConfig& config = alternatives.back();
        if (why_illegal(config, dims, arch) || !why_spills(config, dims, arch)) return;
        if (cta_shape(config).stages > 2 || cta_shape(config).warps > 4) return;
        cases.push_back({{dims, config, {}}, plain(dims, Dtype::kBfloat16), arch, ""});
      });
    }
  }
  return cases;
}

TEST_CASE("what may spill does so by no more than a tuner takes") {
  const auto library = test::nvrtc();
  if (!library) return;
  test::RecordedUsages& recorded = usages(library);
  std::vector<Case> cases = cases_that_may_spill();
  std::vector<int> spilled(cases.size());
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t index, int) {
    const Case& at = cases[static_cast<std::size_t>(index)];
    const jit::ResourceUsage usage =
        recorded.of(kernel_spec(at.shipped.config, at.features, at.arch));
    spilled[static_cast<std::size_t>(index)] = usage.spill_store_bytes + usage.spill_load_bytes;
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = to_string(cases[i].shipped.config);
    CAPTURE(name);
    CAPTURE(cases[i].features.dims.qk);
    CHECK(spilled[i] <= kMaxSpilledBytes);
  }
  CHECK(std::ranges::count_if(spilled, [](int bytes) { return bytes > 0; }) > 5);
  recorded.finish();
}

TEST_CASE("what joins the parts of rows compiles for every head dim, without spills") {
  const auto library = test::nvrtc();
  if (!library) return;
  test::RecordedUsages& recorded = usages(library);
  bool carry_out = false;
  for (const Dims& dims : supported_dims()) {
    KernelFeatures features = plain(dims, carry_out ? Dtype::kFloat16 : Dtype::kBfloat16);
    features.sink_logit = features.carry_out = carry_out;
    carry_out = !carry_out;
    const jit::ResourceUsage usage =
        recorded.of(combine_spec({.tile_rows = 128}, features, {80, '\0'}));
    CAPTURE(dims.v);
    CHECK(usage.known);
    CHECK(usage.spill_store_bytes + usage.spill_load_bytes + usage.local_bytes == 0);
  }
  recorded.finish();
}

}  // namespace
}  // namespace annulus::attention
