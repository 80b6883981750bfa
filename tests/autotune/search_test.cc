#include "autotune/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "annulus/error.h"
#include "attention/kernels/mma/config.h"
#include "autotune/fake_bench.h"
#include "base/work.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;
using test::default_of;
using test::FakeBench;
using test::flat;
using test::kDefault;
using test::smooth;
using test::trials;

SearchResult run(FakeBench& bench, const FakeBench::Truth& truth,
                 const SearchOptions& options = {}) {
  std::vector<Trial> all = trials(truth);
  const std::size_t at = default_of(all);
  return search(std::move(all), at, bench, options);
}

double true_ratio(const SearchResult& result, const FakeBench::Truth& truth) {
  return truth(result.trials[result.winner].config) / truth(kDefault);
}

TEST_CASE("without noise the search finds what the whole space holds, with fewer trials") {
  FakeBench some(smooth), all(smooth);
  const SearchResult found = run(some, smooth);
  SearchOptions exhaustive;
  exhaustive.exhaustive = true;
  const SearchResult best = run(all, smooth, exhaustive);
  CHECK(best.complete);
  CHECK(found.complete);
  CHECK(best.tried == 64);
  CHECK(found.tried < 50);
  CHECK(best.trials[best.winner].config ==
        KernelConfig(attention::MmaConfig{128, 80, 8, 3, false, 1}));
  CHECK(true_ratio(found, smooth) <= 1.03 * true_ratio(best, smooth));
  CHECK(found.winner_time ==
        doctest::Approx(smooth(found.trials[found.winner].config)).epsilon(0.5));
  CHECK(found.runner_up);
  CHECK(found.runner_up != found.winner);
}

TEST_CASE("the default is prepared first and stays where nothing is better") {
  const auto worse = [](const KernelConfig& config) {
    return config == kDefault ? 90 : smooth(config);
  };
  FakeBench bench(worse);
  const SearchResult result = run(bench, worse);
  CHECK(bench.prepared.front() == to_string(kDefault));
  CHECK(result.winner == result.default_at);
  CHECK(result.winner_time == result.default_time);
  CHECK(result.complete);
}

// 200 searches among equals: whatever noise shows, nothing may be taken for a gain; and where there
// is a gain it is found.
TEST_CASE("noise is never taken for a gain, and a gain is found through noise") {
  int changed = 0, found = 0;
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    FakeBench equals(flat, 0.03, seed);
    const SearchResult same = run(equals, flat);
    changed += same.winner != same.default_at;
    FakeBench bench(smooth, 0.03, seed);
    const SearchResult result = run(bench, smooth);
    found += true_ratio(result, smooth) < 0.9;
    worst = std::max(worst, true_ratio(result, smooth));
  }
  MESSAGE(changed << " of 100 searches among equals changed the default; " << found
                  << " of 100 found a gain; the worst result took " << worst
                  << " of the default's time");
  CHECK(changed <= 1);
  CHECK(found >= 99);
  CHECK(worst <= 1.0);
}

TEST_CASE("a gain below the margin is not worth a change") {
  const auto little = [](const KernelConfig& config) {
    return config == kDefault ? 100.0 : 99.3 + 0.01 * config.tile_columns;
  };
  FakeBench exact(little);
  CHECK(run(exact, little).winner == default_of(trials(little)));
  FakeBench noisy(little, 0.01);
  CHECK(run(noisy, little).winner == default_of(trials(little)));
}

TEST_CASE("of equally good ones the first in the fixed order is taken") {
  const auto two = [](const KernelConfig& config) {
    if (config.tile_columns == 96 && attention::cta_shape(config).stages == 2)
      return 80.0 + 0.1 * attention::cta_shape(config).warps;
    return 100.0;
  };
  for (const double noise : {0.0, 0.002}) {
    FakeBench bench(two, noise);
    SearchOptions options;
    options.exhaustive = true;
    const SearchResult result = run(bench, two, options);
    CHECK(result.trials[result.winner].config ==
          KernelConfig(attention::MmaConfig{64, 96, 4, 2, false, 1}));
    REQUIRE(result.runner_up);
    CHECK(result.trials[*result.runner_up].config ==
          KernelConfig(attention::MmaConfig{128, 96, 8, 2, false, 1}));
  }
}

TEST_CASE("what does not pass is dropped with its reason and never measured") {
  FakeBench bench(smooth);
  for (const Trial& trial : trials(smooth)) {
    if (attention::cta_shape(trial.config).stages == 3)
      bench.dropped[to_string(trial.config)] = "spills 16 bytes";
  }
  SearchOptions options;
  options.exhaustive = true;
  const SearchResult result = run(bench, smooth, options);
  CHECK(result.dropped == 16);
  CHECK(result.tried == 48);
  CHECK(attention::cta_shape(result.trials[result.winner].config).stages != 3);
  for (const Trial& trial : result.trials) {
    CHECK((trial.outcome == Trial::Outcome::kDropped) ==
          (attention::cta_shape(trial.config).stages == 3));
    CHECK(trial.reason ==
          (attention::cta_shape(trial.config).stages == 3 ? "spills 16 bytes" : ""));
  }
}

TEST_CASE("what was dropped is no measure for the hope of others") {
  FakeBench bench(smooth);
  std::vector<Trial> all = trials(smooth);
  const std::size_t at = default_of(all);
  Trial quick;
  quick.config = attention::MmaConfig{128, 128, 8, 4, true, 1};
  quick.predicted = 1;
  all.push_back(quick);
  bench.dropped[to_string(quick.config)] = "spills 16 bytes";
  const SearchResult result = search(std::move(all), at, bench, {});
  CHECK(result.dropped == 1);
  CHECK(result.tried > 20);
  CHECK(true_ratio(result, smooth) < 0.9);
}

TEST_CASE("where the default itself does not pass that is said, and nothing is searched") {
  FakeBench bench(smooth);
  bench.dropped[to_string(kDefault)] = "wrong";
  try {
    run(bench, smooth);
    FAIL("searched");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInternal);
    CHECK(std::string(error.what()).find(to_string(kDefault)) != std::string::npos);
  }
  CHECK(bench.prepared.size() == 1);
}

TEST_CASE("where the driver refuses the default the error is the driver's") {
  FakeBench bench(smooth);
  bench.dropped[to_string(kDefault)] = "cuEventRecord failed";
  bench.code = ErrorCode::kDevice;
  try {
    run(bench, smooth);
    FAIL("searched");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDevice);
  }
}

TEST_CASE("stopped anywhere, the best so far stays and is never worse than the default") {
  for (const double noise : {0.0, 0.02}) {
    for (int limit = 1; limit < 40; limit += 3) {
      FakeBench bench(smooth, noise);
      SearchOptions options;
      int asked = 0;
      options.stopped = [&] { return asked++ >= limit; };
      const SearchResult result = run(bench, smooth, options);
      CAPTURE(limit);
      CHECK(true_ratio(result, smooth) <= 1.0);
      CHECK(result.tried + result.dropped <= limit);
      if (result.tried + result.dropped == limit) CHECK_FALSE(result.complete);
    }
  }
}

TEST_CASE("a stop while something is planned ends the search with the best so far") {
  int stop_at = 1;
  for (bool all = false; !all; ++stop_at) {
    CAPTURE(stop_at);
    FakeBench bench(smooth, 0.02);
    int measurements = 0;
    SearchOptions options;
    options.stopped = [&] { return measurements == stop_at; };
    bench.planning = [&] {
      ++measurements;
      base::settle();
    };
    if (stop_at == 1) {
      CHECK_THROWS_AS(run(bench, smooth, options), Error);  // nothing is known of the default
      continue;
    }
    const SearchResult result = run(bench, smooth, options);
    all = measurements < stop_at;
    CHECK(result.complete == all);
    CHECK(result.tried == (all ? measurements - 1 : std::min(stop_at - 1, result.tried)));
    CHECK(true_ratio(result, smooth) <= 1.0);
  }
  CHECK(stop_at > 20);
}

TEST_CASE("progress names every candidate once, in the order in which they are tried") {
  FakeBench bench(smooth);
  std::vector<std::string> seen;
  int last = 0;
  std::vector<Trial> all = trials(smooth);
  const std::size_t at = default_of(all);
  const SearchResult result =
      search(std::move(all), at, bench, {}, [&](const SearchProgress& progress) {
        CHECK(progress.tried == ++last);
        CHECK(progress.candidates == 64);
        seen.push_back(to_string(progress.last->config));
        CHECK(progress.best->ratio.middle <= 1);
      });
  CHECK(seen == bench.prepared);
  CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == seen.size());
  CHECK(last == result.tried);
}

TEST_CASE("a space with nothing but the default is a search of one") {
  FakeBench bench(smooth);
  Trial only;
  only.config = kDefault;
  only.predicted = 1;
  const SearchResult result = search({only}, 0, bench, {});
  CHECK(result.complete);
  CHECK(result.winner == 0);
  CHECK_FALSE(result.runner_up);
}

}  // namespace
}  // namespace annulus::autotune
