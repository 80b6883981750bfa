// Searches that take turns with other uses of the device.

#include "autotune/turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "autotune/fake_bench.h"
#include "base/fail.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

struct CountedTurns : Turns {
  void begin() override {
    if (left-- == 0) base::fail(ErrorCode::kCancelled, "no more");
    CHECK_FALSE(inside);
    inside = true;
    ++turns;
  }
  void end() override {
    CHECK(inside);
    inside = false;
  }
  bool inside = false;
  int turns = 0;
  int left = -1;  // negative: unlimited
};

// A bench that checks that it has the turn.
class WatchedBench : public test::FakeBench {
 public:
  WatchedBench(CountedTurns& turns, double noise)
      : FakeBench([](const KernelConfig&) { return 10.0; }, noise), turns_(turns) {}
  std::optional<Dropped> prepare(const KernelConfig& config) override {
    CHECK(turns_.inside);
    return FakeBench::prepare(config);
  }
  std::vector<std::vector<double>> measure(std::span<const KernelConfig> configs, int rounds,
                                           tuned::CacheState l2) override {
    CHECK(turns_.inside == !exact());
    max_rounds = std::max(max_rounds, rounds);
    return FakeBench::measure(configs, rounds, l2);
  }
  void compile(const KernelConfig&) override {
    CHECK_FALSE(turns_.inside);
    ++compiled;
  }
  int max_rounds = 0;
  int compiled = 0;

 private:
  using KernelConfig = attention::KernelConfig;
  CountedTurns& turns_;
};

TEST_CASE("checks and rounds are made in turns, and compiling in none") {
  const attention::KernelConfig config = attention::MmaConfig{64, 64, 4, 2, false, 1};
  for (const double noise : {0.0, 0.01}) {
    CAPTURE(noise);
    CountedTurns turns;
    WatchedBench bench(turns, noise);
    int modes = 0;
    TurnWorkbench workbench(bench, turns, [&]() -> std::shared_ptr<void> {
      CHECK(turns.inside);
      ++modes;
      return {};
    });
    CHECK(workbench.exact() == (noise == 0));
    CHECK_FALSE(workbench.prepare(config));
    CHECK(bench.compiled == 1);
    CHECK(turns.turns == 1);
    const auto times = workbench.measure(std::vector{config, config}, 25, tuned::CacheState::kWarm);
    REQUIRE(times.size() == 2);
    CHECK(times[0].size() == 25);
    CHECK(times[1].size() == 25);
    CHECK(turns.turns == (noise == 0 ? 1 : 3));
    CHECK(modes == turns.turns);
    if (noise > 0) CHECK(bench.max_rounds == 15);
    turns.left = 0;
    CHECK_THROWS_AS(workbench.prepare(config), Error);
    CHECK_FALSE(turns.inside);
  }
}

}  // namespace
}  // namespace annulus::autotune
