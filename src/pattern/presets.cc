#include <algorithm>
#include <iterator>
#include <vector>

#include "annulus/pattern.h"
#include "base/fail.h"
#include "pattern/words.h"

namespace annulus::inline v0 {
namespace {

// The only list of presets: the parser and the C functions read it, and
// tests/pattern/presets_test.cc compares the table of docs/patterns.md with it. The same test
// counts pairs to check the densities.
constexpr PresetInfo kPresets[] = {
    {"local", "window(1023, 0)", {0.219, 0.0605, 0.0155}},
    {"streaming", "causal & (sink(64) | window(1023, 0))", {0.23, 0.0642, 0.0165}},
    {"global_local", "causal & (window(511, 0) | global(64))", {0.131, 0.0345, 0.00875}},
    // Each head sees about 1024 keys; later heads see keys that are farther away.
    {"dilated",
     "heads(window(1023, 0), window(2047, 0) & block_dilated(2, 64), "
     "window(4095, 0) & block_dilated(4, 64), window(8191, 0) & block_dilated(8, 64))",
     {0.149, 0.0552, 0.0152}},
    {"strided", "causal & strided(8, 4, 64)", {0.129, 0.0795, 0.0668}},
    // Zaheer et al., 2020: blocks of 64, three local, two global and three random blocks.
    {"bigbird",
     "hierarchical([(1, 1, 64)]) | global(128) | random(3, 0, 64)",
     {0.149, 0.0386, 0.00974}},
    // Beltagy et al., 2020: a window of 512, and one global token.
    {"longformer", "window(256, 256) | global(1)", {0.122, 0.0312, 0.00784}},
    // Ding et al., 2023, with the segments and rates of the paper.
    {"longnet",
     "sum(causal & segment(2048, 1), causal & segment(4096, 2), causal & segment(8192, 4), "
     "causal & segment(16384, 6), causal & segment(32768, 12))",
     {0.313, 0.0955, 0.025}},
    {"hierarchical_standard",
     "hierarchical([(1, 4, 64), (4, 16, 64), (16, 64, 64)])",
     {0.235, 0.0762, 0.0201}},
    {"hierarchical_fine",
     "hierarchical([(1, 8, 32), (4, 32, 32), (16, 128, 32)])",
     {0.235, 0.0748, 0.0197}},
    {"hierarchical_long_range",
     "hierarchical([(1, 2, 64), (8, 64, 64), (64, -1, 64)])",
     {0.186, 0.079, 0.0328}},
    {"hierarchical_ultra_sparse",
     "hierarchical([(1, 1, 64), (32, 32, 64), (256, -1, 64)])",
     {0.062, 0.0185, 0.00775}},
};

}  // namespace

std::span<const PresetInfo> presets() { return kPresets; }

Pattern preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PresetInfo& preset : kPresets) {
    if (preset.name == name) return Pattern::parse(preset.expression);
    names.push_back(preset.name);
  }
  base::fail(ErrorCode::kInvalidArgument, "unknown preset '{}'; {}", name.substr(0, 64),
             pattern::advice(name, names));
}

}  // namespace annulus::inline v0
