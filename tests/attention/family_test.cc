#include "attention/kernels/family.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "jit/templates.h"

namespace annulus::attention {
namespace {

TEST_CASE("a family is found by its name and by no other") {
  std::set<std::string> names;
  for (const Family* family : families()) {
    CAPTURE(family->name);
    CHECK(names.insert(family->name).second);
    CHECK(find_family(family->name) == family);
    CHECK(family_names().find(family->name) != std::string::npos);
    CHECK_FALSE(unknown_family(std::string(family->name) + " m64 n64 w4 s2"));
  }
  CHECK(find_family("") == nullptr);
  CHECK(find_family("mm") == nullptr);
  CHECK(find_family("mma ") == nullptr);
  CHECK(unknown_family("tcgen05 m128 n128 w8 s2") == "tcgen05");
  CHECK_FALSE(unknown_family(""));
  CHECK(to_string(KernelConfig{}) == "none");
}

TEST_CASE("a record is complete and its template is part of the library") {
  const auto templates = jit::TemplateSet::embedded();
  for (const Family* family : families()) {
    CAPTURE(family->name);
    CHECK(templates->contains(family->source));
    CHECK(family->revision >= 1);
    CHECK(family->element_bytes >= 1);
    CHECK(std::string(family->instructions) != "");
    REQUIRE(family->fields.size() <= KernelConfig::kMaxOwn);
    std::set<std::string> names = {"family", "tile_rows", "tile_columns"};
    std::set<char> letters;
    for (const ConfigField& field : family->fields) {
      CHECK(names.insert(field.name).second);
      CHECK(letters.insert(field.letter).second);
    }
    const bool complete = family->why_illegal && family->enumerate && family->cta &&
                          family->footprint && family->supports_kv_splits && family->why_unsuited &&
                          family->why_no_strides && family->spec && family->tile_work &&
                          family->row_work && family->pace && family->shape && family->bind;
    CHECK(complete);
  }
}

TEST_CASE("what a family ships is its own, is enumerated, and reads back from its text") {
  for (const Family* family : families()) {
    CAPTURE(family->name);
    std::set<std::string> texts;
    family->enumerate([&](std::span<const KernelConfig> alternatives) {
      for (const KernelConfig& config : alternatives) {
        CHECK(config.family == family);
        const std::string text = to_string(config);
        CHECK(texts.insert(text).second);
        CHECK(parse_config(text) == config);
      }
    });
    CHECK(texts.size() > family->shipped.size());
    CHECK_FALSE(family->shipped.empty());
    for (const ShippedConfig& shipped : family->shipped) {
      CHECK(shipped.config.family == family);
      CHECK(texts.count(to_string(shipped.config)) == 1);
    }
  }
}

TEST_CASE("alternatives differ in nothing but how many CTAs are resident") {
  for (const Family* family : families()) {
    family->enumerate([&](std::span<const KernelConfig> alternatives) {
      REQUIRE_FALSE(alternatives.empty());
      const CtaShape first = cta_shape(alternatives.front());
      int resident = first.resident + 1;
      for (const KernelConfig& config : alternatives) {
        const CtaShape cta = cta_shape(config);
        CHECK(cta.resident == --resident);
        CHECK(cta.threads == first.threads);
        CHECK(cta.packed_heads() == first.packed_heads());
        CHECK(config.tile_rows == alternatives.front().tile_rows);
        CHECK(config.tile_columns == alternatives.front().tile_columns);
      }
      CHECK(resident >= 1);
    });
  }
}

TEST_CASE("arguments are kept by value, each at an address that suits it") {
  struct alignas(64) Wide {
    int values[32];
  };
  LaunchArguments arguments;
  Wide wide{};
  wide.values[31] = 7;
  arguments.add(5);
  arguments.add(wide);
  LaunchArguments copy = arguments;
  arguments.add(6);
  wide.values[31] = 0;
  const auto kept = copy.parameters();
  REQUIRE(kept.size() == 2);
  CHECK(*static_cast<const int*>(kept[0].value) == 5);
  CHECK(kept[0].bytes == sizeof(int));
  CHECK(static_cast<const Wide*>(kept[1].value)->values[31] == 7);
  CHECK(reinterpret_cast<std::uintptr_t>(kept[1].value) % alignof(Wide) == 0);
  CHECK(*static_cast<const int*>(arguments.parameters()[2].value) == 6);
}

}  // namespace
}  // namespace annulus::attention
