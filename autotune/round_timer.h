#ifndef ANNULUS_AUTOTUNE_ROUND_TIMER_H_
#define ANNULUS_AUTOTUNE_ROUND_TIMER_H_

// Times configurations side by side: the time between events on the default stream of a device.
// Every round starts with another configuration, so that a drifting clock favours none. With L2
// warm, a run that is not measured goes before, and where runs are short several are measured
// together.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "tuned/trial.h"

namespace annulus::autotune {

struct MeasureOptions {
  // Least length of a measurement: short kernels are launched several times in it.
  double least_micros = 200;
  int max_repeats = 1000;
};

class RoundTimer {
 public:
  // Puts one run of a configuration on the default stream. It owns what it needs, which lives until
  // a measurement in which its configuration has no part.
  using Run = std::function<void()>;
  using MakeRun = std::function<Run(const attention::KernelConfig& config)>;

  // Throws Error{kOutOfMemory, kDevice}.
  RoundTimer(const device::ContextPointer& context, const MeasureOptions& options);

  // As Workbench::measure, in microseconds. `make` is called for what has no run yet, after runs
  // that are not needed have gone. Throws what `make` and the runs throw, and Error{kDevice}.
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2, const MakeRun& make);
  // As Workbench::rest: sleeps for 100 ms, and twice as long each time.
  static void rest(int attempt);

 private:
  // A candidate that is ready to run.
  struct Ready {
    Run run;
    int repeats;  // runs in a measurement with L2 warm
  };
  std::vector<const Ready*> ready(std::span<const attention::KernelConfig> configs,
                                  const MakeRun& make);
  double time_micros(const Run& run, int repeats, tuned::CacheState l2);

  device::ContextPointer context_;
  MeasureOptions options_;
  device::Buffer scratch_;  // twice the L2
  device::Event start_, end_;
  std::map<std::string, Ready> ready_;  // by the configuration's text
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_ROUND_TIMER_H_
