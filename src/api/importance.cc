// The public handle of an importance tracker.
#include "annulus/selection.h"

#include "api/impl.h"
#include "base/fail.h"
#include "base/work.h"
#include "device/buffer.h"
#include "jit/missing_kernel.h"
#include "selection/tracker.h"
#include "shape_log/shape_line.h"

namespace annulus::inline v0 {

struct ImportanceTracker::Impl {
  selection::Tracker tracker;
  base::ProcessMark process{};
};

ImportanceTracker::ImportanceTracker(const Device& device, const Problem& problem,
                                     const Selection& selection, const TrackerOptions& options)
    : impl_([&] {
        validate(problem);
        const base::Work work(options.work, "planning");
        selection::validate(problem, selection, options);
        const jit::KernelsFor wanted([&] {
          return fmt::format("an importance tracker over {}", shape_log::wanted_by(problem, {}));
        });
        const Device::Impl& inside = api::inside(device);
        return std::make_shared<const Impl>(Impl{selection::Tracker(
            inside.context, *inside.kernels, api::limits_of(inside), problem, selection, options)});
      }()) {}

std::size_t ImportanceTracker::state_bytes() const {
  return static_cast<std::size_t>(impl_->tracker.state_bytes());
}
std::size_t ImportanceTracker::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->tracker.workspace_bytes());
}

void ImportanceTracker::measure(void* stream, const Operands& operands, const std::int32_t* given,
                                void* state, void* workspace) const {
  impl_->process.check("importance tracker");
  impl_->tracker.measure(static_cast<abi::CUstream>(stream), operands, given, state, workspace);
}

void ImportanceTracker::update(void* stream, const Operands& operands, std::int32_t* given,
                               void* state, void* workspace) const {
  impl_->process.check("importance tracker");
  impl_->tracker.update(static_cast<abi::CUstream>(stream), operands, given, state, workspace);
}

}  // namespace annulus::inline v0
