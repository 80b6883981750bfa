#include "autotune/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "annulus/types.h"
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
                 const tuned::SearchOptions& options = {}) {
  std::vector<tuned::Trial> all = trials(truth);
  const std::size_t at = default_of(all);
  return search(std::move(all), at, bench, options);
}

double true_ratio(const SearchResult& result, const FakeBench::Truth& truth) {
  return truth(result.trials[result.winner].config) / truth(kDefault);
}

TEST_CASE("without noise the search finds what the whole space holds, with fewer trials") {
  FakeBench all(smooth);
  tuned::SearchOptions exhaustive;
  exhaustive.exhaustive = true;
  const SearchResult best = run(all, smooth, exhaustive);
  CHECK(best.complete);
  CHECK(best.tried == 64);
  CHECK(best.trials[best.winner].config ==
        KernelConfig(attention::MmaConfig{128, 80, 8, 3, false, 1}));
  // Better predictions mean fewer tried candidates. The configurations are 5 % apart.
  double tried_before = 0;
  for (const double error : {0.02, 0.1, 0.2}) {
    double tried = 0, lost = 0;
    constexpr int kSearches = 30;
    for (std::uint64_t seed = 0; seed < kSearches; ++seed) {
      FakeBench some(smooth);
      std::vector<tuned::Trial> trials = test::trials(smooth, error, seed);
      const std::size_t at = default_of(trials);
      const SearchResult found = search(std::move(trials), at, some, {});
      CHECK(found.complete);
      CHECK(found.runner_up);
      CHECK(found.runner_up != found.winner);
      CHECK(found.winner_time == smooth(found.trials[found.winner].config));
      tried += found.tried / 64.0 / kSearches;
      lost += (true_ratio(found, smooth) / true_ratio(best, smooth) - 1) / kSearches;
    }
    MESSAGE("predictions off by up to " << error << ": " << tried << " of the space tried, " << lost
                                        << " lost on average");
    CHECK(lost <= 0.015);
    CHECK(tried < 0.6);
    CHECK(tried > tried_before);
    tried_before = tried;
  }
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

// 200 searches among equal candidates. Noise must never be taken for a gain, and a real gain must
// be found.
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
    tuned::SearchOptions options;
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
  for (const tuned::Trial& trial : trials(smooth)) {
    if (attention::cta_shape(trial.config).stages == 3)
      bench.dropped[to_string(trial.config)] = "spills 16 bytes";
  }
  tuned::SearchOptions options;
  options.exhaustive = true;
  const SearchResult result = run(bench, smooth, options);
  CHECK(result.dropped == 16);
  CHECK(result.tried == 48);
  CHECK(attention::cta_shape(result.trials[result.winner].config).stages != 3);
  for (const tuned::Trial& trial : result.trials) {
    CHECK((trial.outcome == tuned::Trial::Outcome::kDropped) ==
          (attention::cta_shape(trial.config).stages == 3));
    CHECK(trial.reason ==
          (attention::cta_shape(trial.config).stages == 3 ? "spills 16 bytes" : ""));
  }
}

TEST_CASE("what was dropped is no measure for the hope of others") {
  FakeBench bench(smooth);
  std::vector<tuned::Trial> all = trials(smooth);
  const std::size_t at = default_of(all);
  tuned::Trial quick;
  quick.config = attention::MmaConfig{128, 128, 8, 4, true, 1};
  quick.predicted = 1;
  all.push_back(quick);
  bench.dropped[to_string(quick.config)] = "spills 16 bytes";
  const SearchResult result = search(std::move(all), at, bench, {});
  CHECK(result.dropped == 1);
  CHECK(result.tried > 10);
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
      tuned::SearchOptions options;
      int asked = 0;
      options.stopped = [&] { return asked++ >= limit; };
      CAPTURE(limit);
      std::optional<SearchResult> ended;
      try {
        ended = run(bench, smooth, options);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kCancelled);
        CHECK(bench.prepared.size() == 1);  // the default was not measured
        continue;
      }
      const SearchResult& result = *ended;
      CHECK(true_ratio(result, smooth) <= 1.0);
      CHECK(result.tried + result.dropped <= limit);
      if (result.tried + result.dropped == limit) CHECK_FALSE(result.complete);
    }
  }
}

TEST_CASE("a stop while something is planned ends the search with the best so far") {
  int ended = 0, stop_at = 1;
  for (bool all = false; !all; ++stop_at) {
    CAPTURE(stop_at);
    FakeBench bench(smooth, 0.02);
    int measurements = 0;
    tuned::SearchOptions options;
    options.stopped = [&] { return measurements == stop_at; };
    bench.planning = [&] {
      ++measurements;
      base::settle();
    };
    std::optional<SearchResult> result;
    try {
      result = run(bench, smooth, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCancelled);
      CHECK(bench.prepared.size() == 1);  // the default was not measured
      continue;
    }
    ++ended;
    all = measurements < stop_at;
    CHECK(result->complete == all);
    CHECK(result->tried <= measurements);
    CHECK(result->tried ==
          static_cast<int>(std::ranges::count_if(result->trials, [](const tuned::Trial& trial) {
            return trial.outcome == tuned::Trial::Outcome::kTried;
          })));
    CHECK(true_ratio(*result, smooth) <= 1.0);
  }
  CHECK(stop_at > 20);
  CHECK(ended > 18);
}

// Otherwise a problem with long launches would continue for minutes after a stop.
TEST_CASE("a stop is asked for before every measurement, the finalists' too") {
  FakeBench whole(smooth, 0.02);
  int all = 0;
  whole.planning = [&] { ++all; };
  REQUIRE(run(whole, smooth).complete);
  for (int stop_at = 20; stop_at < all; stop_at += 5) {
    FakeBench bench(smooth, 0.02);
    int measurements = 0;
    bench.planning = [&] { ++measurements; };
    tuned::SearchOptions options;
    options.stopped = [&] { return measurements >= stop_at; };
    const SearchResult result = run(bench, smooth, options);
    CAPTURE(stop_at);
    CHECK(measurements == stop_at);
    CHECK_FALSE(result.complete);
    // The winner is the fastest candidate among those that are surely faster, by the last
    // measurements.
    const tuned::Trial& winner = result.trials[result.winner];
    for (const tuned::Trial& trial : result.trials) {
      if (!trial.other_ratio || trial.ratio.high >= 0.99) continue;
      CHECK(winner.ratio.middle <= trial.ratio.middle * 1.006);
    }
  }
}

TEST_CASE("contenders that do not fit the device's memory together are halved") {
  class Small : public FakeBench {
   public:
    Small() : FakeBench(smooth, 0.01) {}
    std::vector<std::vector<double>> measure(std::span<const KernelConfig> configs, int rounds,
                                             tuned::CacheState l2) override {
      if (configs.size() > 3) throw Error(ErrorCode::kOutOfMemory, "too many");
      return FakeBench::measure(configs, rounds, l2);
    }
  };
  Small bench;
  const SearchResult result = run(bench, smooth);
  CHECK(result.complete);
  CHECK(true_ratio(result, smooth) < 0.9);
}

TEST_CASE("what was nominated is tried first, in its order") {
  FakeBench bench(smooth);
  tuned::SearchOptions options;
  options.nominated = {attention::MmaConfig{128, 16, 8, 4, false, 1},
                       attention::MmaConfig{64, 128, 4, 1, true, 1},  // not a candidate
                       kDefault, attention::MmaConfig{64, 16, 4, 1, false, 1}};
  const SearchResult result = run(bench, smooth, options);
  REQUIRE(bench.prepared.size() > 3);
  CHECK(bench.prepared[0] == to_string(kDefault));
  CHECK(bench.prepared[1] == to_string(options.nominated[0]));
  CHECK(bench.prepared[2] == to_string(options.nominated[3]));
  CHECK(true_ratio(result, smooth) < 0.9);
}

TEST_CASE("a workbench learns which candidates come next") {
  class Foreseeing : public FakeBench {
   public:
    Foreseeing() : FakeBench(smooth) {}
    void foresee(std::span<const KernelConfig> next) override {
      CHECK(next.size() <= 9);
      for (const KernelConfig& config : next) foreseen.insert(to_string(config));
    }
    std::set<std::string> foreseen;
  };
  Foreseeing bench;
  run(bench, smooth);
  int known = 0;
  for (const std::string& config : bench.prepared) known += bench.foreseen.contains(config);
  CHECK(known + 1 == std::ssize(bench.prepared));  // all candidates except the default
}

TEST_CASE("a search leaves most of a large space alone, as far as its share allows") {
  // The predictions contain no information: the same time is predicted for every candidate.
  FakeBench bench(smooth);
  std::vector<tuned::Trial> all = trials(smooth);
  for (tuned::Trial& trial : all) trial.predicted = 100;
  const std::size_t at = default_of(all);
  tuned::SearchOptions options;
  options.least_most = 5;
  options.share = 0.25;
  std::vector<int> most;
  const SearchResult result =
      search(std::move(all), at, bench, options,
             [&](const SearchProgress& progress) { most.push_back(progress.most); });
  CHECK(result.tried <= 17);
  CHECK(result.tried > 6);
  CHECK(result.complete);
  CHECK(most.front() == 17);
}

TEST_CASE("what is far behind after its first rounds gets no more of them") {
  FakeBench bench(smooth, 0.01);
  const SearchResult result = run(bench, smooth);
  int few = 0, more = 0;
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    const tuned::Trial& trial = result.trials[i];
    if (trial.outcome != tuned::Trial::Outcome::kTried || i == result.default_at) continue;
    ++(trial.rounds < tuned::SearchOptions().quick_rounds ? few : more);
  }
  CHECK(few > 0);
  CHECK(more > 0);
  CHECK(result.trials[result.winner].rounds >= tuned::SearchOptions().final_rounds);
}

TEST_CASE("a configuration that is slower with L2 in its other state replaces nothing") {
  for (const tuned::CacheState l2 : {tuned::CacheState::kWarm, tuned::CacheState::kCold}) {
    FakeBench bench(
        l2 == tuned::CacheState::kWarm ? FakeBench::Truth(smooth) : FakeBench::Truth(flat), 0.01);
    // Configurations that are fast in one state of L2 are slow in the other.
    const auto inverse = [](const KernelConfig& config) { return 1e4 / smooth(config); };
    bench.cold =
        l2 == tuned::CacheState::kWarm ? FakeBench::Truth(inverse) : FakeBench::Truth(smooth);
    tuned::SearchOptions options;
    options.l2 = l2;
    const SearchResult result = run(bench, smooth, options);
    const bool replaced = result.winner != result.default_at;
    CHECK(replaced == (l2 == tuned::CacheState::kCold));
    if (!replaced) continue;
    const std::optional<tuned::Interval>& other = result.trials[result.winner].other_ratio;
    REQUIRE(other);
    CHECK(other->middle == doctest::Approx(1).epsilon(0.02));
  }
}

// A device that is throttled from round `from` on, until its third rest.
class Throttled : public FakeBench {
 public:
  explicit Throttled(int from, bool for_good = false)
      : FakeBench(smooth, 0.005, 3), from_(from), for_good_(for_good) {}
  std::vector<std::vector<double>> measure(std::span<const KernelConfig> configs, int rounds,
                                           tuned::CacheState l2) override {
    auto times = FakeBench::measure(configs, rounds, l2);
    for (std::size_t i = 0; i < times.size(); ++i) {
      for (int r = 0; r < rounds; ++r) {
        double& time = times[i][static_cast<std::size_t>(r)];
        time = smooth(configs[i]) * (1 + 0.001 * r);
        // A kernel that is bound by memory, here the default, slows down less than the others.
        if (round_ + r >= from_ && (for_good_ || rests < 3)) {
          time *= configs[i] == kDefault ? 1.2 : 1.5;
        }
      }
    }
    round_ += rounds;
    return times;
  }
  void rest(int attempt) override {
    CHECK(attempt == rests % 4);
    ++rests;
  }
  int rests = 0;

 private:
  int from_, round_ = 0;
  bool for_good_;
};

TEST_CASE("rounds of a device that is throttled are repeated once it has come to rest") {
  Throttled steady(1 << 30), throttled(20), for_good(20, true);
  const SearchResult undisturbed = run(steady, smooth);
  CHECK(undisturbed.repeated == 0);
  CHECK(steady.rests == 0);
  CHECK_FALSE(undisturbed.slowed);
  const SearchResult found = run(throttled, smooth);
  CHECK(throttled.rests == 3);
  CHECK(found.repeated >= 3);
  CHECK_FALSE(found.slowed);
  CHECK(found.winner == undisturbed.winner);
  // If the device stays slow, its times are used as they are, and the search ends.
  const SearchResult slow = run(for_good, smooth);
  CHECK(for_good.rests <= 8);  // rests both with L2 warm and with L2 cold
  CHECK(slow.slowed);
  CHECK(slow.complete);
}

TEST_CASE("progress names every candidate once, in the order in which they are tried") {
  FakeBench bench(smooth);
  std::vector<std::string> seen;
  int last = 0;
  std::vector<tuned::Trial> all = trials(smooth);
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
  tuned::Trial only;
  only.config = kDefault;
  only.predicted = 1;
  const SearchResult result = search({only}, 0, bench, {});
  CHECK(result.complete);
  CHECK(result.winner == 0);
  CHECK_FALSE(result.runner_up);
}

}  // namespace
}  // namespace annulus::autotune
