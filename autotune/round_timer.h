#ifndef ANNULUS_AUTOTUNE_ROUND_TIMER_H_
#define ANNULUS_AUTOTUNE_ROUND_TIMER_H_

// Times configurations side by side, by the time between events on the default stream of a device.
// Every round starts with another configuration, so that a drifting clock favours none. If L2 is
// warm, an unmeasured run comes before each measured one, and short runs are measured several at a
// time.

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
  // The least length of a measurement. Short kernels are launched several times in one measurement.
  double min_micros = 200;
  int max_repeats = 1000;
};

class RoundTimer {
 public:
  // Queues one run of a configuration on the default stream. It owns its data. It is destroyed at
  // the next measurement that does not use its configuration.
  using Run = std::function<void()>;
  using MakeRun = std::function<Run(const attention::KernelConfig& config)>;

  // Throws Error{kOutOfMemory, kDevice}.
  RoundTimer(const device::ContextPointer& context, const MeasureOptions& options);

  // Implements Workbench::measure(). The times are in microseconds. `make` is called for each
  // configuration that has no run yet, after unneeded runs were destroyed. Throws what `make` and
  // the runs throw, and Error{kDevice}.
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2, const MakeRun& make);
  // Implements Workbench::rest(): sleeps for 100 ms at first, and twice as long each time.
  static void rest(int attempt);

 private:
  // A candidate that is ready to run.
  struct Ready {
    Run run;
    int repeats;  // the number of runs in a measurement with warm L2
  };
  std::vector<const Ready*> ready(std::span<const attention::KernelConfig> configs,
                                  const MakeRun& make);
  double time_micros(const Run& run, int repeats, tuned::CacheState l2);

  device::ContextPointer context_;
  MeasureOptions options_;
  device::Buffer scratch_;  // its size is twice the size of L2
  device::Event start_, end_;
  std::map<std::string, Ready> ready_;  // [text of the configuration]
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_ROUND_TIMER_H_
