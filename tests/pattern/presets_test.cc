#include <doctest/doctest.h>

#include <fmt/format.h>

#include <set>

#include "pattern/classify.h"
#include "pattern/random_pattern.h"

namespace annulus::pattern {
namespace {

TEST_CASE("presets are as dense as they say, at three lengths") {
  for (const PresetInfo& info : presets()) {
    CAPTURE(info.name);
    for (int i = 0; i < 3; ++i) {
      const Extent extent = Extent::whole(kPresetLengths[i], kPresetLengths[i]);
      const double found = density(preset(info.name), extent, 12).value;
      // Three digits are stated.
      CHECK(fmt::format("{:.3g}", found) == fmt::format("{:.3g}", info.density[i]));
    }
  }
}

TEST_CASE("presets are expressions: they print, parse, and get sparser as the sequence grows") {
  std::set<std::string_view> names;
  for (const PresetInfo& info : presets()) {
    CAPTURE(info.name);
    CHECK(names.insert(info.name).second);
    const Pattern pattern = preset(info.name);
    CHECK(Pattern::parse(pattern.to_string()) == pattern);
    CHECK(Pattern::parse(fmt::format("preset({})", info.name)) == pattern);
    CHECK(info.density[0] > info.density[1]);
    CHECK(info.density[1] > info.density[2]);
    CHECK(info.density[2] < 0.08);
  }
  CHECK(names.size() == 12);
  CHECK(names.contains("longnet"));
  CHECK(sparsity(density(preset("hierarchical_ultra_sparse"), Extent::whole(65536, 65536))).value >=
        0.99);
  CHECK(test::code_of([] { preset("dense"); }) == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus::pattern
