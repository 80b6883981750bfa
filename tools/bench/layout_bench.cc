// Measures layouts on one core. The first figures are for a million tokens: rows of 128 x 128
// blocks are classified and written. Some of the patterns have keys that repeat every few tokens,
// because their time could grow with the number of keys. Other figures are imports from other
// formats, and look-ups in the cache. The last figures are plans with long lists of tiles, for
// drawn blocks, for given blocks, and for windows with global tokens over a billion tokens.

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "annulus/layout.h"
#include "attention/plan/plan.h"
#include "base/fail.h"
#include "base/random.h"
#include "harness.h"
#include "pattern/classify.h"

namespace {

using namespace annulus;

constexpr std::int64_t kMillion = std::int64_t{1} << 20;

struct Cost {
  double seconds = 0;
  double blocks = 0;
};

Cost make(const Pattern& pattern, std::int64_t block) {
  const double start = bench::thread_seconds();
  const BlockLayout layout =
      pattern::make_layout(pattern, pattern::Extent::whole(kMillion, kMillion), block, block);
  Cost cost = {bench::thread_seconds() - start, static_cast<double>(layout.indices.size())};
  if (cost.blocks == 0) base::fail(ErrorCode::kInternal, "an empty layout was made");
  return cost;
}

void add(bench::Bench* bench, const char* text, double bar_millis) {
  const Pattern pattern = Pattern::parse(text);
  bench->add({.name = std::string("layout of ") + text,
              .unit = "ms",
              .bar = bar_millis,
              .lower_is_better = true},
             [pattern] { return make(pattern, 128).seconds * 1e3; });
  bench->add({.name = std::string("the same, a block: ") + text,
              .unit = "ns",
              .bar = 40,
              .lower_is_better = true},
             [pattern] {
               const Cost cost = make(pattern, 128);
               return cost.seconds * 1e9 / cost.blocks;
             });
}

// Imports ten million kept blocks with all checks. There are 100 blocks in each of 100,000 rows.
void add_import(bench::Bench* bench) {
  constexpr std::int64_t kRows = 100000, kKept = 100;
  const LayoutSizes sizes = {64, 64, 64 * kRows, 64 * kRows};
  auto indptr = std::make_shared<std::vector<std::int64_t>>(1, 0);
  auto indices = std::make_shared<std::vector<std::int32_t>>();
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t i = 0; i < kKept; ++i) {
      indices->push_back(static_cast<std::int32_t>(i * 997 + row % 997));
    }
    indptr->push_back(static_cast<std::int64_t>(indices->size()));
  }
  bench->add({.name = "import of a CSR of 10 million blocks",
              .unit = "ms",
              .bar = 100,
              .lower_is_better = true},
             [=] {
               const double start = bench::thread_seconds();
               const BlockLayout layout = from_csr(sizes, *indptr, *indices);
               const double millis = (bench::thread_seconds() - start) * 1e3;
               if (layout.indices.size() != indices->size()) {
                 base::fail(ErrorCode::kInternal, "blocks were lost");
               }
               return millis;
             });
}

// Looks up the layouts of a decode that grows by one token. There are 32 layers, and each has one
// of three patterns.
void add_cache(bench::Bench* bench) {
  bench->add({.name = "cache hit", .unit = "ns", .bar = 200, .lower_is_better = true}, [] {
    const LayoutQuery queries[] = {
        LayoutQuery(causal() & window(4095, 0), 128, 128),
        LayoutQuery(causal() & (window(1023, 0) | global(256)), 128, 128),
        LayoutQuery(causal(), 128, 128)};
    LayoutCache cache;
    for (const LayoutQuery& query : queries) cache.get(query, 1, 40001);
    constexpr int kCalls = 1000000;
    const double start = bench::thread_seconds();
    for (int i = 0; i < kCalls; ++i) cache.get(queries[i % 3], 1, 40001 + i / 32 % 64);
    const double seconds = bench::thread_seconds() - start;
    if (cache.counters().misses != 3) base::fail(ErrorCode::kInternal, "a layout was made again");
    return seconds * 1e9 / kCalls;
  });
}

// The pattern of a layer of the decode. The layers use three patterns in turn.
const Pattern& layer_pattern(std::int64_t layer) {
  static const Pattern patterns[] = {causal() & (window(4095, 0) | sink(4)),
                                     causal() & (window(1023, 0) | global(256)),
                                     causal() & (strided(16, 4, 64) | sink(64))};
  return patterns[layer % 3];
}

// Replays a trace of 10,000 steps with 32 layers each. Each step makes the sequence one token
// longer.
void add_replay(bench::Bench* bench) {
  bench->add({.name = "replay of a growing decode: hits", .unit = "%", .bar = 97}, [] {
    constexpr std::int64_t kSteps = 10000, kLayers = 32;
    const LayoutQuery queries[] = {LayoutQuery(layer_pattern(0), 128, 128),
                                   LayoutQuery(layer_pattern(1), 128, 128),
                                   LayoutQuery(layer_pattern(2), 128, 128)};
    LayoutCache cache;
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        cache.get(queries[layer % 3], 1, 20000 + step);
      }
    }
    return 100.0 * static_cast<double>(cache.counters().hits) / (kSteps * kLayers);
  });
}

// Measures the host time to plan a step whose kernel already exists. The list of tiles is found in
// the cache, or made.
void add_planning(bench::Bench* bench, const char* name, bool cached) {
  bench->add({.name = name, .unit = "us", .bar = 0, .lower_is_better = true}, [cached] {
    const attention::DeviceLimits limits = {jit::parse_arch("sm_80"), 108, 166912};
    Problem problem;
    problem.heads = 32;
    problem.kv_heads = 8;
    problem.seq_q = 1;
    problem.dim_qk = problem.dim_v = 128;
    attention::TileCache cache({std::int64_t{256} << 20, 512});
    constexpr int kCalls = 2000;
    const double start = bench::thread_seconds();
    for (int i = 0; i < kCalls; ++i) {
      problem.pattern = layer_pattern(i);
      problem.seq_k = 100000 + i / 32;
      const attention::Choice choice = attention::choose_config(problem, limits);
      attention::make_plan(problem, choice, limits, {}, cached ? &cache : nullptr);
    }
    return (bench::thread_seconds() - start) * 1e6 / kCalls;
  });
}

attention::LaunchPlan plan_of(const Problem& problem) {
  const attention::DeviceLimits limits = {{90, 'a'}, 132, 227 * 1024};
  return attention::make_plan(problem, attention::choose_config(problem, limits), limits);
}

// The kilobytes on a line of /proc/self/status, such as VmRSS. 0 if the kernel does not report
// them.
double status_kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == name + ":" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

// The peak memory of planning, in bytes, without the memory that was in use before.
double peak_bytes(const Problem& problem) {
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak is counted from now on
  const double before = status_kilobytes("VmRSS");
  plan_of(problem);
  return 1024 * (status_kilobytes("VmHWM") - before);
}

// Measures a plan whose list has millions of tiles.
void add_long_list(bench::Bench* bench, const std::string& name, const Problem& problem) {
  bench->add(
      {.name = "plan of " + name + ", a tile", .unit = "ns", .bar = 40, .lower_is_better = true},
      [problem] {
        const double start = bench::thread_seconds();
        const attention::LaunchPlan plan = plan_of(problem);
        const double seconds = bench::thread_seconds() - start;
        return seconds * 1e9 / static_cast<double>(plan.tiles->kept_tiles());
      });
  bench->add({.name = "the same, bytes uploaded a tile: " + name, .unit = "bytes"}, [problem] {
    const attention::LaunchPlan plan = plan_of(problem);
    return static_cast<double>(plan.device_bytes) / static_cast<double>(plan.tiles->kept_tiles());
  });
  bench->add({.name = "the same, memory at its peak over those bytes: " + name,
              .unit = "x",
              .bar = 3,
              .lower_is_better = true},
             [problem] {
               const double peak = peak_bytes(problem);
               return peak / static_cast<double>(plan_of(problem).device_bytes);
             });
}

Problem problem_of(std::int64_t seq, std::int64_t heads, Pattern pattern) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = heads;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = std::move(pattern);
  return problem;
}

// A given layout of 64 x 64 blocks over a million tokens, with `kept` blocks in each row of each
// head.
Pattern given_blocks(std::int64_t heads, std::uint32_t kept) {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 64;
  layout.seq_q = layout.seq_k = kMillion;
  layout.heads = heads;
  layout.indptr.push_back(0);
  base::Random random(11);
  const auto apart = static_cast<std::uint32_t>(kMillion / 64) / kept;
  for (std::int64_t row = 0; row < heads * kMillion / 64; ++row) {
    for (std::uint32_t i = 0; i < kept; ++i) {
      layout.indices.push_back(static_cast<std::int32_t>(i * apart + random.below(apart)));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  return blocks(std::move(layout));
}

void add_long_lists(bench::Bench* bench) {
  add_long_list(bench, "random(64, 1, 64), 2^20 tokens, 8 heads",
                problem_of(kMillion, 8, annulus::random(64, 1, 64)));
  add_long_list(bench, "8.4 million blocks of 64 x 64 that are given",
                problem_of(kMillion, 8, given_blocks(8, 64)));
}

// Measures plans over 2^30 tokens. Their rows of tiles are computed from the row numbers.
void add_long_sequence(bench::Bench* bench, const char* text) {
  const Problem problem = problem_of(std::int64_t{1} << 30, 32, Pattern::parse(text));
  bench->add({.name = std::string("plan of 2^30 tokens, ") + text,
              .unit = "ms",
              .bar = 5,
              .lower_is_better = true},
             [problem] {
               const double start = bench::thread_seconds();
               plan_of(problem);
               return (bench::thread_seconds() - start) * 1e3;
             });
  bench->add({.name = std::string("the same, bytes uploaded: ") + text,
              .unit = "bytes",
              .bar = 1 << 20,
              .lower_is_better = true},
             [problem] { return static_cast<double>(plan_of(problem).device_bytes); });
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("layout_bench", argc, argv);
  add(&bench, "causal & (window(4095, 0) | global(256))", 20);
  add(&bench, "causal & window(4095, 0) & dilated(4)", 0);
  add(&bench, "causal & window(65535, 0) & block_dilated(16, 128)", 0);
  add(&bench, "causal & (strided(64, 8, 128) | random(3, 1, 128))", 0);
  add(&bench, "segment(16384, 4)", 0);
  add(&bench, "natten(1024, 1024, 13)", 0);
  add(&bench, "preset(hierarchical_long_range)", 0);
  add_import(&bench);
  add_cache(&bench);
  add_replay(&bench);
  add_planning(&bench, "planning a decode step, its list found", true);
  add_planning(&bench, "planning a decode step, its list made", false);
  add_long_lists(&bench);
  add_long_sequence(&bench, "causal & (window(1023, 0) | global(256))");
  add_long_sequence(&bench, "window(511, 511) | global(256)");
  return bench.run();
}
