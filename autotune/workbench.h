#ifndef ANNULUS_AUTOTUNE_WORKBENCH_H_
#define ANNULUS_AUTOTUNE_WORKBENCH_H_

// Tries candidates: a real device measures their time, a simulated one predicts it by the pipe
// model. The search (search.h) knows only this interface and no device.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "autotune/operands.h"
#include "autotune/verify.h"
#include "device/stream.h"

namespace annulus::autotune {

// A candidate that is dropped.
struct Dropped {
  std::string reason;
  ErrorCode code = ErrorCode::kInternal;  // as in Verdict
};

class Workbench {
 public:
  virtual ~Workbench() = default;

  // Compiles and verifies a candidate; returns the reason where it is dropped.
  virtual std::optional<Dropped> prepare(const attention::KernelConfig& config) = 0;

  // times[i][r]: what configuration i took in round r, in microseconds or, where predictions are
  // exact, in cycles. In each round all configurations run one after another. Requires: prepare()
  // found no reason against any of them.
  virtual std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                                   int rounds) = 0;

  // True for predictions: the same question has the same answer, so one round suffices.
  virtual bool exact() const = 0;
};

// Predicts cycles from the work that a simulated device counts on parts of the problem, extended to
// the whole.
class PredictedWorkbench : public Workbench {
 public:
  // The verifier must outlive it. Requires: a simulated device in checked mode, which counts
  // everything.
  PredictedWorkbench(const Verifier& verifier, const attention::PipeDevice& pipes,
                     const Problem& problem);

  std::optional<Dropped> prepare(const attention::KernelConfig& config) override;
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds) override;
  bool exact() const override { return true; }

 private:
  const Verifier& verifier_;
  attention::PipeDevice pipes_;
  Problem problem_;
  attention::KernelFeatures features_;
  std::map<std::string, double> cycles_;  // by the configuration's text
};

struct MeasureOptions {
  bool cold_cache = false;  // empty L2 before every launch
  // Least length of a measurement: short kernels are launched several times in it.
  double least_micros = 200;
  int max_repeats = 1000;
};

// Measures the time between events on the default stream of a device. Every round starts with
// another configuration, so that a drifting clock favours none.
class MeasuredWorkbench : public Workbench {
 public:
  // The verifier and `kernels` must outlive it. Allocates the operands of the whole problem. Throws
  // Error{kOutOfMemory, kDevice}.
  MeasuredWorkbench(const Verifier& verifier, device::ContextPointer context,
                    jit::KernelCache& kernels, attention::DeviceLimits limits,
                    const Problem& problem, std::uint64_t seed, const MeasureOptions& options = {});

  std::optional<Dropped> prepare(const attention::KernelConfig& config) override;
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds) override;
  bool exact() const override { return false; }

 private:
  double time_micros(const attention::Forward& forward, int repeats);

  const Verifier& verifier_;
  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  Problem problem_;
  MeasureOptions options_;
  DeviceOperands operands_;
  device::Buffer workspace_;  // of the candidate that is measured
  device::Buffer scratch_;    // twice the L2
  device::Event start_, end_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_WORKBENCH_H_
