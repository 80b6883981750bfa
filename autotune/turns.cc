#include "autotune/turns.h"

#include <algorithm>

namespace annulus::autotune {
namespace {

// The number of measurements in one turn, over all configurations.
constexpr int kMeasurementsOfTurn = 30;

class Turn {
 public:
  Turn(Turns& turns, const std::function<std::shared_ptr<void>()>& mode) : turns_(turns) {
    turns_.begin();
    try {
      mode_ = mode();
    } catch (...) {
      turns_.end();
      throw;
    }
  }
  ~Turn() {
    mode_.reset();
    turns_.end();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns& turns_;
  std::shared_ptr<void> mode_;
};

}  // namespace

std::optional<Dropped> TurnWorkbench::prepare(const attention::KernelConfig& config) {
  inner_.compile(config);
  const Turn turn(turns_, mode_);
  return inner_.prepare(config);
}

std::vector<std::vector<double>> TurnWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds, tuned::CacheState l2) {
  if (exact()) return inner_.measure(configs, rounds, l2);
  std::vector<std::vector<double>> times(configs.size());
  const int most = std::max(1, kMeasurementsOfTurn / static_cast<int>(configs.size()));
  for (int left = rounds; left > 0;) {
    const int now = std::min(left, most);
    left -= now;
    const Turn turn(turns_, mode_);
    const auto measured = inner_.measure(configs, now, l2);
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].insert(times[i].end(), measured[i].begin(), measured[i].end());
    }
  }
  return times;
}

}  // namespace annulus::autotune
