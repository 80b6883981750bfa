// What a layout of a million tokens costs, on one core: rows of 128 x 128 blocks, classified and
// written down. Patterns whose keys repeat every few tokens are those that could cost by the key.

#include <cstdint>
#include <string>

#include "base/fail.h"
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
  return bench.run();
}
