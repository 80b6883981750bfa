#include "tuned/entry_index.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/random.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

using test::sample_entry;

Kept kept(int queries, int keys, int place = 0) {
  Kept made{sample_entry(0), std::to_string(queries) + "/" + std::to_string(keys), place};
  made.entry.shape.queries = queries;
  made.entry.shape.keys = keys;
  return made;
}

TEST_CASE("of two entries for a shape the place decides, then the search, the driver, the gain") {
  EntryIndex index(13000);
  Kept best = kept(10, 10, 1), other_driver = kept(10, 10, 1), partial = kept(10, 10, 1),
       earlier = kept(10, 10, 0);
  best.path = "best";
  other_driver.path = "other driver";
  other_driver.entry.origin.driver_version = 12080;
  other_driver.entry.ratio_high_ppm = 1;
  partial.path = "partial";
  partial.entry.complete = false;
  partial.entry.ratio_high_ppm = 1;
  earlier.path = "earlier";
  earlier.entry.complete = false;
  earlier.entry.ratio_high_ppm = 990'000;
  const ShapeKey shape = best.entry.shape;
  index.put(partial);
  CHECK(index.exact(shape)->path == "partial");
  index.put(other_driver);
  CHECK(index.exact(shape)->path == "other driver");
  index.put(best);
  CHECK(index.exact(shape)->path == "best");
  index.put(other_driver);
  index.put(partial);
  CHECK(index.exact(shape)->path == "best");
  index.put(earlier);
  CHECK(index.exact(shape)->path == "earlier");
  index.put(best);
  CHECK(index.exact(shape)->path == "earlier");
  index.replace(best);
  CHECK(index.exact(shape)->path == "best");
  index.erase(shape);
  index.erase(shape);
  CHECK(index.empty());
  CHECK(index.exact(shape) == nullptr);
  CHECK(index.nearest(shape).kept == nullptr);
}

// The rule of entry_index.h, applied to all entries one by one.
const Kept* nearest_of_all(const std::vector<Kept>& all, const ShapeKey& shape) {
  const Kept* nearest = nullptr;
  const auto rank = [&](const Kept& each) {
    return std::tuple(length_distance(each.entry.shape, shape).value_or(kMaxDistance + 1),
                      std::abs(each.entry.shape.queries - shape.queries),
                      -each.entry.shape.queries - each.entry.shape.keys);
  };
  for (const Kept& each : all) {
    if (std::get<0>(rank(each)) > kMaxDistance) continue;
    if (nearest == nullptr || rank(each) < rank(*nearest)) nearest = &each;
  }
  return nearest;
}

TEST_CASE("the nearest entry is that of the rule, whatever else is there") {
  base::Random random(11);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    EntryIndex index;
    std::vector<Kept> all;
    for (std::uint32_t count = random.below(30); count > 0; --count) {
      Kept each = kept(static_cast<int>(random.below(20)), static_cast<int>(random.below(20)));
      each.entry.shape.heads = static_cast<int>(random.below(2));
      std::erase_if(all, [&](const Kept& other) { return other.entry.shape == each.entry.shape; });
      all.push_back(each);
      index.replace(each);
    }
    for (int look = 0; look < 30; ++look) {
      ShapeKey shape = sample_entry(0).shape;
      shape.queries = static_cast<int>(random.below(20));
      shape.keys = static_cast<int>(random.below(20));
      shape.heads = static_cast<int>(random.below(2));
      const Kept* expected = nearest_of_all(all, shape);
      const EntryIndex::Near near = index.nearest(shape);
      REQUIRE((near.kept == nullptr) == (expected == nullptr));
      if (expected == nullptr) continue;
      ++found;
      const auto distance = length_distance(near.kept->entry.shape, shape);
      CHECK(near.distance == distance);
      CHECK(distance == length_distance(expected->entry.shape, shape));
      CHECK(std::abs(near.kept->entry.shape.queries - shape.queries) ==
            std::abs(expected->entry.shape.queries - shape.queries));
      CHECK(near.kept->entry.shape.queries + near.kept->entry.shape.keys ==
            expected->entry.shape.queries + expected->entry.shape.keys);
    }
  }
  CHECK(found > 1000);
}

}  // namespace
}  // namespace annulus::tuned
