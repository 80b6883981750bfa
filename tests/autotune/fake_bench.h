#ifndef ANNULUS_TESTS_AUTOTUNE_FAKE_BENCH_H_
#define ANNULUS_TESTS_AUTOTUNE_FAKE_BENCH_H_

// A workbench without a device, and a space to search with it.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attention/kernels/mma/config.h"
#include "autotune/search.h"
#include "base/random.h"

namespace annulus::test {

using attention::KernelConfig;

// A device defined by a function: the true time of each configuration, with noise of a given size.
class FakeBench : public autotune::Workbench {
 public:
  using Truth = std::function<double(const KernelConfig&)>;
  explicit FakeBench(Truth truth, double noise = 0, std::uint64_t seed = 1)
      : truth_(std::move(truth)), noise_(noise), random_(seed) {}

  std::optional<autotune::Dropped> prepare(const KernelConfig& config) override {
    prepared.push_back(to_string(config));
    const auto found = dropped.find(to_string(config));
    if (found == dropped.end()) return std::nullopt;
    return autotune::Dropped{found->second, code};
  }
  std::vector<std::vector<double>> measure(std::span<const KernelConfig> configs, int rounds,
                                           tuned::CacheState l2) override {
    if (planning) planning();
    std::vector<std::vector<double>> times(configs.size());
    for (int round = 0; round < rounds; ++round) {
      // Deviations that all measurements of a round share, such as a drifting clock rate, are not
      // noise. An exact bench has none.
      const double drift = exact() ? 1 : 1 + 0.3 * std::sin(0.7 * clock_++);
      for (std::size_t i = 0; i < configs.size(); ++i) {
        const double spike = random_.below(20) == 0 ? 1 + 10 * noise_ : 1;
        const Truth& truth = l2 == tuned::CacheState::kCold && cold ? cold : truth_;
        times[i].push_back(truth(configs[i]) * drift * spike *
                           (1 + noise_ * std::abs(static_cast<double>(random_.normal()))));
      }
    }
    measured += static_cast<int>(configs.size());
    return times;
  }
  bool exact() const override { return noise_ == 0; }

  std::map<std::string, std::string> dropped;
  ErrorCode code = ErrorCode::kInternal;  // the error code of the dropped candidates
  std::vector<std::string> prepared;
  int measured = 0;
  std::function<void()> planning;  // called before each measurement
  Truth cold;                      // times with L2 cold; empty: the same as with L2 warm

 private:
  Truth truth_;
  double noise_;
  base::Random random_;
  double clock_ = 0;
};

// A space of 64 configurations. Their static predictions have errors of up to `error`.
inline std::vector<tuned::Trial> trials(const FakeBench::Truth& truth, double error = 0.2,
                                        std::uint64_t seed = 4) {
  std::vector<tuned::Trial> made;
  base::Random random(seed);
  for (const int warps : {4, 8}) {
    for (int columns = 16; columns <= 128; columns += 16) {
      for (int stages = 1; stages <= 4; ++stages) {
        tuned::Trial trial;
        trial.config = attention::MmaConfig{16 * warps, columns, warps, stages, false, 1};
        trial.predicted = truth(trial.config) * (1 - error + 2 * error * random.uniform());
        made.push_back(trial);
      }
    }
  }
  return made;
}

// A smooth function with one minimum: 8 warps, 80 columns, 3 stages.
inline double smooth(const KernelConfig& config) {
  return 100 + 0.02 * std::pow(config.tile_columns - 80, 2) +
         5 * std::abs(attention::cta_shape(config).stages - 3) +
         (attention::cta_shape(config).warps == 4 ? 10 : 0);
}
// A function whose values all differ by less than the noise.
inline double flat(const KernelConfig& config) { return 100 + 0.001 * config.tile_columns; }

inline const KernelConfig kDefault = attention::MmaConfig{64, 64, 4, 2, false, 1};

inline std::size_t default_of(const std::vector<tuned::Trial>& all) {
  const auto same = [](const tuned::Trial& trial) { return trial.config == kDefault; };
  return static_cast<std::size_t>(std::ranges::find_if(all, same) - all.begin());
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_AUTOTUNE_FAKE_BENCH_H_
