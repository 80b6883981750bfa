#include "autotune/batch_workbench.h"

#include <utility>

#include "autotune/batch_verify.h"
#include "base/fail.h"
#include "batch/batch_runner.h"
#include "device/launches.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

class PredictedBatch final : public PredictingWorkbench {
 public:
  PredictedBatch(const device::ContextPointer& context, jit::KernelCache& kernels,
                 const attention::DeviceLimits& limits, const tuned::BatchTarget& target,
                 std::uint64_t seed, int threads, int compilers)
      : kernels_(kernels),
        pipes_(attention::pipe_device(context->info())),
        limits_(limits),
        target_(target),
        verifier_(context, kernels, limits, target, seed, threads),
        ahead_(
            kernels,
            [this](const KernelConfig& config) {
              return batch::kernels_of(verifier_.plan_of(config));
            },
            compilers) {}

  void compile(const KernelConfig& config) override {
    compile_for(kernels_, [&] { return batch::kernels_of(verifier_.plan_of(config)); });
  }
  void foresee(std::span<const KernelConfig> next) override { ahead_.want(next); }

 private:
  std::optional<Dropped> predict(const KernelConfig& config, double* cycles) override {
    const Verdict verdict = verifier_.check(config);
    if (verdict.reason) return Dropped{*verdict.reason, verdict.code};
    const SmallStep& small = verifier_.step();
    *cycles = predicted_cycles(pipes_, limits_, target_, config, verdict.counted, small.problem,
                               small.requests);
    return std::nullopt;
  }

  jit::KernelCache& kernels_;
  attention::PipeDevice pipes_;
  attention::DeviceLimits limits_;
  tuned::BatchTarget target_;
  BatchVerifier verifier_;
  AheadCompiler ahead_;
};

class MeasuredBatch final : public Workbench {
 public:
  MeasuredBatch(const device::ContextPointer& context, jit::KernelCache& kernels,
                const attention::DeviceLimits& limits, const tuned::BatchTarget& target,
                std::uint64_t seed, int threads, int compilers, const MeasureOptions& options)
      : context_(context),
        kernels_(kernels),
        limits_(limits),
        target_(target),
        verifier_(context, kernels, limits, target, seed, threads),
        step_(context, draw_step(target.problem, target.step, {.seed = seed})),
        timer_(context, options),
        ahead_(
            kernels, [this](const KernelConfig& config) { return kernels_of(config); }, compilers) {
  }

  std::optional<Dropped> prepare(const KernelConfig& config) override {
    const Verdict verdict = verifier_.check(config);
    return verdict.reason ? std::optional(Dropped{*verdict.reason, verdict.code}) : std::nullopt;
  }
  void compile(const KernelConfig& config) override {
    compile_for(kernels_, [&] { return kernels_of(config); });
  }
  void foresee(std::span<const KernelConfig> next) override { ahead_.want(next); }
  std::vector<std::vector<double>> measure(std::span<const KernelConfig> configs, int rounds,
                                           tuned::CacheState l2) override {
    return timer_.measure(configs, rounds, l2,
                          [this](const KernelConfig& config) { return make_run(config); });
  }
  void rest(int attempt) override { RoundTimer::rest(attempt); }
  bool exact() const override { return false; }

 private:
  // A plan whose step is prepared in its own workspace.
  struct Prepared {
    Prepared(const device::ContextPointer& context, jit::KernelCache& kernels,
             batch::BatchPlanData plan)
        : runner(context, kernels, std::move(plan)),
          workspace(context, static_cast<std::size_t>(runner.plan().workspace_bytes)) {}

    batch::BatchRunner runner;
    device::Buffer workspace;
  };

  batch::BatchPlanData plan_of(const KernelConfig& config) const {
    return plan_with(config, target_.problem, target_.options, limits_);
  }

  // The kernels for the small step and for the whole one. Most often they are the same.
  std::vector<jit::KernelSpec> kernels_of(const KernelConfig& config) const {
    std::vector<jit::KernelSpec> specs = batch::kernels_of(verifier_.plan_of(config));
    for (jit::KernelSpec& spec : batch::kernels_of(plan_of(config))) {
      specs.push_back(std::move(spec));
    }
    return specs;
  }

  RoundTimer::Run make_run(const KernelConfig& config) {
    auto made = std::make_shared<const Prepared>(context_, kernels_, plan_of(config));
    void* const workspace = pointer<void>(made->workspace);
    device::StreamSink to(nullptr);
    made->runner.prepare(to, step_.metadata, workspace);
    made->runner.run(to, step_.operands, workspace);
    if (const BatchStatus status = made->runner.status(workspace);
        status.rule != BatchRule::kNone) {
      base::fail(ErrorCode::kInternal, "request {} of the step that is measured has {}",
                 status.request, to_string(status.rule));
    }
    return [this, made = std::move(made), workspace] {
      device::StreamSink stream(nullptr);
      made->runner.run(stream, step_.operands, workspace);
    };
  }

  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  tuned::BatchTarget target_;
  BatchVerifier verifier_;
  DeviceStep step_;
  RoundTimer timer_;
  AheadCompiler ahead_;
};

}  // namespace

std::unique_ptr<Workbench> batch_workbench(device::ContextPointer context,
                                           jit::KernelCache& kernels,
                                           attention::DeviceLimits limits,
                                           const tuned::BatchTarget& target, std::uint64_t seed,
                                           int threads, int compilers) {
  if (!context->info().simulated) {
    return measured_batch_workbench(context, kernels, limits, target, seed, threads, compilers);
  }
  return std::make_unique<PredictedBatch>(context, kernels, limits, target, seed, threads,
                                          compilers);
}

std::unique_ptr<Workbench> measured_batch_workbench(device::ContextPointer context,
                                                    jit::KernelCache& kernels,
                                                    attention::DeviceLimits limits,
                                                    const tuned::BatchTarget& target,
                                                    std::uint64_t seed, int threads, int compilers,
                                                    const MeasureOptions& options) {
  return std::make_unique<MeasuredBatch>(context, kernels, limits, target, seed, threads, compilers,
                                         options);
}

}  // namespace annulus::autotune
