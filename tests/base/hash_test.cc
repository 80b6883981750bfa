#include "base/hash.h"

#include <doctest/doctest.h>

#include <set>

namespace annulus::base {
namespace {

// The values come from the specification's implementation of XXH3-128 (xxhsum -H2), in canonical
// order.
TEST_CASE("digests are the published function, in canonical order") {
  CHECK(digest("").hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(digest("a").hex() == "a96faf705af16834e6c632b61e964e1f");
  CHECK(digest("abc").hex() == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("any single bit changes the digest, at every branch of the length") {
  for (std::size_t length : {1u, 3u, 8u, 16u, 17u, 128u, 129u, 240u, 241u, 1024u, 3000u}) {
    std::string text(length, '\0');
    std::set<Digest> seen{digest(text)};
    for (std::size_t i = 0; i < length; ++i) {
      text[i] = 1;
      seen.insert(digest(text));
      text[i] = 0;
    }
    CHECK(seen.size() == length + 1);
  }
}

}  // namespace
}  // namespace annulus::base
