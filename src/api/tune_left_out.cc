// Replaces tune.cc in a build without the tuner, which still looks up and lists tuned results.
#include "annulus/tune.h"
#include "api/measure_again.h"
#include "api/tune_until.h"
#include "base/fail.h"

namespace annulus {
namespace api {
namespace {

[[noreturn]] void refuse() {
  base::fail(ErrorCode::kUnsupported,
             "this build of Annulus has no tuner; build it with ANNULUS_TUNER=ON, or take results "
             "that were found elsewhere (ANNULUS_TUNED)");
}

}  // namespace

TuneResult tune_until(const Device&, const TuneSubject&, const TuneOptions&,
                      const std::function<bool()>&) {
  refuse();
}

std::vector<TuneResult> tune_batch_until(const Device&, const BatchProblem&,
                                         const std::vector<StepRequests>&, const TuneOptions&,
                                         const std::function<bool()>&) {
  refuse();
}

TunedNote measure_again(const Device&, const tuned::Entry&, std::uint64_t,
                        const std::function<bool()>&) {
  refuse();
}

}  // namespace api

inline namespace v0 {

TuneResult replay_tuning(const std::string&, const std::function<void(const TuneProgress&)>&) {
  api::refuse();
}

struct BackgroundTuning::Impl {};
BackgroundTuning::BackgroundTuning(const Device&, const BackgroundTuningOptions&) { api::refuse(); }
BackgroundTuning::~BackgroundTuning() = default;
void BackgroundTuning::pause() const {}
void BackgroundTuning::resume() const {}
bool BackgroundTuning::wait(double) const { return true; }
void BackgroundTuning::cancel() const {}
BackgroundTuningStatus BackgroundTuning::status() const { return {}; }
TuningReport tuning_report(const std::vector<std::string>&, const std::optional<std::string>&) {
  api::refuse();
}

std::vector<TuneResult> tune_batch(const Device& device, const BatchProblem& problem,
                                   const std::vector<StepRequests>& step,
                                   const TuneOptions& options) {
  return api::tune_batch_until(device, problem, step, options, {});
}

TuneResult tune(const Device& device, const Problem& problem, const TuneOptions& options) {
  return api::tune_until(device, {problem}, options, {});
}

TuneResult tune(const Device& device, const Problem& problem, const Selection& selection,
                const TuneOptions& options) {
  return api::tune_until(device, {problem, &selection}, options, {});
}

}  // namespace v0
}  // namespace annulus
