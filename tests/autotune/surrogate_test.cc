#include "autotune/surrogate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "attention/kernels/mma/config.h"
#include "autotune/fake_bench.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;
using attention::MmaConfig;

TEST_CASE("configurations that differ more are further apart") {
  const KernelConfig base = MmaConfig{64, 64, 4, 2, false, 1};
  CHECK(distance(base, base) == 0);
  CHECK(distance(base, MmaConfig{64, 96, 4, 2, false, 1}) == doctest::Approx(1));
  CHECK(distance(base, MmaConfig{64, 64, 4, 4, false, 1}) == doctest::Approx(1));
  CHECK(distance(base, MmaConfig{64, 64, 4, 2, true, 1}) == doctest::Approx(1));
  CHECK(distance(base, MmaConfig{128, 64, 8, 2, false, 1}) == doctest::Approx(2));
  CHECK(distance(base, attention::parse_config("wgmma m64 n64 w4 s2").value()) >= 6);
}

std::vector<KernelConfig> line() {
  std::vector<KernelConfig> configs;
  for (int columns = 16; columns <= 256; columns += 16) {
    configs.push_back(MmaConfig{64, columns, 4, 2, false, 1});
  }
  return configs;
}

TEST_CASE(
    "an observation tells much of itself, something of its neighbours, and how good predictions "
    "are") {
  const std::vector<KernelConfig> configs = line();
  const std::vector<double> predicted(configs.size(), 100);
  Surrogate surrogate(configs, predicted, 0);
  CHECK(surrogate.forecast(0).log_ratio == doctest::Approx(0).epsilon(1e-9));
  CHECK(surrogate.forecast(5).log_ratio == doctest::Approx(0).epsilon(1e-9));
  const double before = surrogate.forecast(9).deviation;
  surrogate.observe(8, 0.2, 0);
  // Its ratio is known now. A neighbour's forecast is close to it, and a distant configuration's
  // forecast is less so.
  CHECK(surrogate.forecast(8).log_ratio == doctest::Approx(0.2).epsilon(0.01));
  CHECK(surrogate.forecast(9).log_ratio > 0.04);
  CHECK(surrogate.forecast(9).log_ratio < 0.2);
  CHECK(surrogate.forecast(15).log_ratio < surrogate.forecast(9).log_ratio);
  CHECK(surrogate.forecast(8).deviation < 0.01);
  CHECK(surrogate.forecast(9).deviation > 0);
  // The observed error shows that predictions are less accurate than assumed.
  CHECK(surrogate.forecast(1).deviation > before);
}

TEST_CASE("a noisy observation moves less than a sure one") {
  const std::vector<KernelConfig> configs = line();
  const std::vector<double> predicted(configs.size(), 100);
  Surrogate sure(configs, predicted, 0), noisy(configs, predicted, 0);
  sure.observe(8, 0.2, 0);
  noisy.observe(8, 0.2, 0.2);
  CHECK(noisy.forecast(8).log_ratio < 0.7 * sure.forecast(8).log_ratio);
  CHECK(noisy.forecast(8).deviation > sure.forecast(8).deviation);
}

TEST_CASE("expected gains follow the forecast, and nothing is expected of what cannot run") {
  const std::vector<KernelConfig> configs = line();
  std::vector<double> predicted(configs.size(), 100);
  predicted[3] = 90;
  predicted[4] = 300;
  predicted[5] = std::numeric_limits<double>::infinity();
  predicted[6] = -5;  // a file may contain such values
  predicted[7] = 0;
  Surrogate surrogate(configs, predicted, 0);
  CHECK(surrogate.expected_gain(6, 0) == 0);
  CHECK(surrogate.expected_gain(7, 0) == 0);
  CHECK(surrogate.expected_gain(3, 0) > 0.1);
  CHECK(surrogate.expected_gain(3, 0) > surrogate.expected_gain(2, 0));
  CHECK(surrogate.expected_gain(2, 0) > 0);
  CHECK(surrogate.expected_gain(4, 0) < 1e-6);
  CHECK(surrogate.expected_gain(5, 0) == 0);
  surrogate.observe(5, 0.1, 0);  // ignored
  CHECK(surrogate.forecast(3).log_ratio == doctest::Approx(std::log(0.9)));
  // A gain relative to a better best is smaller.
  CHECK(surrogate.expected_gain(3, -0.2) < surrogate.expected_gain(3, 0));
}

// The error of the model is a smooth function of the configuration. So a few observations suffice
// to learn it.
TEST_CASE("forecasts become better than predictions") {
  std::vector<KernelConfig> configs;
  std::vector<double> predicted, truth;
  for (const tuned::Trial& trial : test::trials(test::smooth)) {
    configs.push_back(trial.config);
    predicted.push_back(100);  // contains no information
    truth.push_back(std::log(test::smooth(trial.config) / test::smooth(configs.front())));
  }
  Surrogate surrogate(configs, predicted, 0);
  const auto error = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      sum += std::abs(surrogate.forecast(i).log_ratio - truth[i]);
    }
    return sum / static_cast<double>(configs.size());
  };
  const double before = error();
  for (std::size_t i = 1; i < configs.size(); i += 5) surrogate.observe(i, truth[i], 0);
  MESSAGE("mean error of a log ratio " << before << ", and " << error() << " with 13 of 64 known");
  CHECK(error() < before / 3);
}

}  // namespace
}  // namespace annulus::autotune
