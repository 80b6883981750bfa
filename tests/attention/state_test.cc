#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "annulus/problem.h"
#include "annulus/types.h"
#include "base/random.h"

namespace {

using namespace annulus;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The state of keys with the scores t[] (base 2) and one value each.
HostState state_of(const std::vector<float>& t, const std::vector<float>& v) {
  HostState state = HostState::empty(1, 1);
  for (const float score : t) state.m[0] = std::max(state.m[0], score);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const float weight = std::exp2(t[i] - state.m[0]);
    state.l[0] += weight;
    state.acc[0] += weight * v[i];
  }
  return state;
}

HostState random_state(base::Random& random, std::int64_t rows, std::int64_t dim) {
  HostState state = HostState::empty(rows, dim);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    if (random.below(4) == 0) continue;  // stays empty
    state.m[row] = 20 * random.normal();
    state.l[row] = 1 + 5 * static_cast<float>(random.uniform());
    for (std::size_t d = 0; d < static_cast<std::size_t>(dim); ++d) {
      state.acc[row * static_cast<std::size_t>(dim) + d] = random.normal();
    }
  }
  return state;
}

void same_bits(const HostState& a, const HostState& b) {
  REQUIRE(a.l.size() == b.l.size());
  for (std::size_t i = 0; i < a.l.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(a.m[i]) == std::bit_cast<std::uint32_t>(b.m[i]));
    CHECK(std::bit_cast<std::uint32_t>(a.l[i]) == std::bit_cast<std::uint32_t>(b.l[i]));
  }
  for (std::size_t i = 0; i < a.acc.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(a.acc[i]) == std::bit_cast<std::uint32_t>(b.acc[i]));
  }
}

TEST_CASE("an empty state is the neutral element, bit for bit") {
  base::Random random(1);
  const HostState state = random_state(random, 40, 3);
  const HostState empty = HostState::empty(40, 3);
  same_bits(merge(state, empty), state);
  same_bits(merge(empty, state), state);
  same_bits(merge(empty, empty), empty);
  const FinishedRows rows = finish(empty, LseBase::kNatural);
  for (const float value : rows.o) CHECK(value == 0.0f);
  for (const float value : rows.lse) CHECK(value == -kInfinity);
}

TEST_CASE("merging commutes bit for bit and associates within rounding") {
  base::Random random(2);
  const HostState a = random_state(random, 60, 4);
  const HostState b = random_state(random, 60, 4);
  const HostState c = random_state(random, 60, 4);
  same_bits(merge(a, b), merge(b, a));
  const FinishedRows left = finish(merge(merge(a, b), c), LseBase::kTwo);
  const FinishedRows right = finish(merge(a, merge(b, c)), LseBase::kTwo);
  for (std::size_t i = 0; i < left.lse.size(); ++i) {
    if (left.lse[i] == -kInfinity) {
      CHECK(right.lse[i] == -kInfinity);
    } else {
      CHECK(left.lse[i] == doctest::Approx(right.lse[i]).epsilon(1e-5));
    }
  }
  for (std::size_t i = 0; i < left.o.size(); ++i) {
    CHECK(std::abs(left.o[i] - right.o[i]) < 1e-4f);
  }
}

TEST_CASE("merging two halves of the keys gives the whole") {
  const HostState whole = state_of({1, -3, 4, 0.5f}, {1, 2, 3, 4});
  const HostState halves = merge(state_of({1, -3}, {1, 2}), state_of({4, 0.5f}, {3, 4}));
  CHECK(halves.m[0] == whole.m[0]);
  CHECK(halves.l[0] == doctest::Approx(whole.l[0]));
  CHECK(halves.acc[0] == doctest::Approx(whole.acc[0]));
  const double sum = 2 + std::exp2(-3) + 16 + std::exp2(0.5);
  CHECK(finish(whole, LseBase::kTwo).lse[0] == doctest::Approx(std::log2(sum)));
  CHECK(finish(whole, LseBase::kNatural).lse[0] == doctest::Approx(std::log(sum)));
}

TEST_CASE("NaN stays in its row and an infinite maximum takes all") {
  HostState a = HostState::empty(3, 1);
  a.m = {1, std::nanf(""), kInfinity};
  a.l = {1, 1, 1};
  a.acc = {2, 2, 2};
  HostState b = HostState::empty(3, 1);
  b.m = {1, 1, 1};
  b.l = {1, 1, 1};
  b.acc = {4, 4, 4};
  for (const HostState& merged : {merge(a, b), merge(b, a)}) {
    CHECK(merged.l[0] == 2.0f);
    CHECK(merged.acc[0] == 6.0f);
    CHECK(std::isnan(merged.l[1]));
    CHECK(merged.l[2] == 1.0f);
    CHECK(merged.acc[2] == 2.0f);
  }
}

TEST_CASE("states that do not fit each other are refused") {
  const HostState a = HostState::empty(2, 3);
  CHECK_THROWS_AS(merge(a, HostState::empty(3, 3)), Error);
  CHECK_THROWS_AS(merge(a, HostState::empty(2, 4)), Error);
  HostState other = a;
  other.version = kStateVersion + 1;
  CHECK_THROWS_AS(merge(a, other), Error);
  other = a;
  other.l.pop_back();
  CHECK_THROWS_AS(merge(other, a), Error);
  CHECK_THROWS_AS(finish(other, LseBase::kTwo), Error);
  CHECK_THROWS_AS(HostState::empty(-1, 3), Error);
  CHECK_THROWS_AS(HostState::empty(1, 0), Error);
}

}  // namespace
