#ifndef ANNULUS_AUTOTUNE_WORKBENCH_H_
#define ANNULUS_AUTOTUNE_WORKBENCH_H_

// Tries candidates. A real device measures their time, and a simulated one predicts it by the pipe
// model. The search (search.h) uses only this interface and no device.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "attention/run/branched_forward.h"
#include "attention/tiles/device_tiles.h"
#include "attention/tiles/tile_cache.h"
#include "autotune/ahead_compiler.h"
#include "autotune/operands.h"
#include "autotune/round_timer.h"
#include "autotune/verify.h"
#include "device/buffer.h"

namespace annulus::autotune {

// A candidate that is dropped.
struct Dropped {
  std::string reason;
  ErrorCode code = ErrorCode::kInternal;  // the same as Verdict::code
};

class Workbench {
 public:
  virtual ~Workbench() = default;

  // Compiles and verifies a candidate. If it is dropped, returns the reason.
  virtual std::optional<Dropped> prepare(const attention::KernelConfig& config) = 0;

  // Compiles and loads what prepare() and measure() need for a candidate, without running it.
  // Errors are ignored, because prepare() reports them.
  virtual void compile(const attention::KernelConfig& /*config*/) {}

  // Announces candidates that are likely to be prepared next. A workbench may begin to compile them
  // on other threads.
  virtual void foresee(std::span<const attention::KernelConfig> /*next*/) {}

  // times[i][r] is the time of configuration i in round r, in microseconds, or in cycles if
  // exact(). In each round all configurations run one after another. Requires: prepare() dropped
  // none of them.
  virtual std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                                   int rounds, tuned::CacheState l2) = 0;

  // Lets a device that is slower than usual rest, before it is measured for the (attempt + 1)-th
  // time.
  virtual void rest(int /*attempt*/) {}

  // True for predictions: repeated measurements have the same result, so one round suffices, and
  // there is no state of L2.
  virtual bool exact() const = 0;
};

// Predicts cycles once for each candidate, and returns them as times. Requires: a simulated device
// in checked mode, which counts everything.
class PredictingWorkbench : public Workbench {
 public:
  std::optional<Dropped> prepare(const attention::KernelConfig& config) final;
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2) final;
  bool exact() const final { return true; }

 private:
  // Verifies a candidate and sets its cycles, which are not finite if no CTA fits. If the candidate
  // is dropped, returns the reason.
  virtual std::optional<Dropped> predict(const attention::KernelConfig& config, double* cycles) = 0;

  std::map<std::string, double> cycles_;  // [text of the configuration]
};

// Predicts cycles from the work that a simulated device counts on parts of the problem,
// extrapolated to the whole problem.
class PredictedWorkbench : public PredictingWorkbench {
 public:
  // The verifier and `kernels` must outlive this object. `compilers` threads compile foreseen
  // candidates.
  PredictedWorkbench(const Verifier& verifier, const jit::KernelCache& kernels,
                     const attention::PipeDevice& pipes, const Problem& problem, int compilers = 0);

  void compile(const attention::KernelConfig& config) override { verifier_.compile(config); }
  void foresee(std::span<const attention::KernelConfig> next) override { ahead_.want(next); }

 private:
  std::optional<Dropped> predict(const attention::KernelConfig& config, double* cycles) override;

  const Verifier& verifier_;
  attention::PipeDevice pipes_;
  struct Branch {
    Problem problem;
    attention::KernelFeatures features;
  };
  std::vector<Branch> branches_;  // the branches of the pattern's sum; else the whole problem
  AheadCompiler ahead_;
};

// Measures the time of a problem's launches on a device (round_timer.h).
class MeasuredWorkbench : public Workbench {
 public:
  // The verifier and `kernels` must outlive this object. `compilers` threads compile foreseen
  // candidates. Allocates the operands of the whole problem. Throws Error{kOutOfMemory, kDevice}.
  MeasuredWorkbench(const Verifier& verifier, device::ContextPointer context,
                    jit::KernelCache& kernels, attention::DeviceLimits limits,
                    const Problem& problem, std::uint64_t seed, int compilers = 0,
                    const MeasureOptions& options = {});

  std::optional<Dropped> prepare(const attention::KernelConfig& config) override;
  void compile(const attention::KernelConfig& config) override { verifier_.compile(config); }
  void foresee(std::span<const attention::KernelConfig> next) override { ahead_.want(next); }
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2) override;
  void rest(int attempt) override { RoundTimer::rest(attempt); }
  bool exact() const override { return false; }

 private:
  RoundTimer::Run make_run(const attention::KernelConfig& config);

  const Verifier& verifier_;
  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  Problem problem_;
  DeviceOperands operands_;
  device::Buffer workspace_;  // the workspace of the candidate that is being measured
  // shared by all candidates, of which many have tiles of the same size
  attention::TileCache tiles_;
  attention::DeviceTileCache device_tiles_;
  RoundTimer timer_;
  AheadCompiler ahead_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_WORKBENCH_H_
