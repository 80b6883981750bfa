#ifndef ANNULUS_PLANNER_PLANNER_H_
#define ANNULUS_PLANNER_PLANNER_H_

// Planning, from a problem to launches that can run. Only this code takes these steps:
//
//   options -> limits -> choices -> plans -> kernels and lists on the device -> description
//              (choices.h, pure)   (attention/plan, selection, ring: pure)      (describe.h)
//
// A plan, a plan with a selection and a ring take all steps; prefetch stops before the description.
// If the kernel of a configuration does not work, the steps from the plans on are repeated with
// another configuration: after the tuned one the heuristic's, then its next choice, then a general
// kernel.

#include <memory>
#include <optional>
#include <string>

#include "annulus/device.h"
#include "attention/run/branched_forward.h"
#include "attention/tiles/device_tiles.h"
#include "attention/tiles/tile_cache.h"
#include "base/background.h"
#include "base/log.h"
#include "base/noted.h"
#include "jit/kernel_cache.h"
#include "planner/late/late.h"
#include "planner/late/late_jobs.h"
#include "planner/prepared.h"
#include "tuned/store.h"

namespace annulus::planner {

// A request for a plan.
struct Request {
  const Problem& problem;
  const PlanOptions& options;
  const Selection* selection = nullptr;  // null: no selection
  // Whether a general kernel is used if no other kernel works. If false, the error of the
  // heuristic's choice is thrown instead.
  bool general_serves = true;
};

// Throws Error{kInvalidArgument} or Error{kUnsupported} for a request that cannot be planned.
void check_request(const Request& request);

// A plan whose own kernel may not be compiled yet.
struct PreparedLate {
  Prepared first;
  std::shared_ptr<LateKernel> late;  // null if `first` is final
  std::size_t workspace_bytes = 0;   // the maximum of both plans
};

// Wraps a plan whose kernel is final.
PreparedLate for_good(Prepared prepared);

// A plan without its kernels.
struct Preview {
  PlanInfo info;
  PlanPrediction predicted;
};

// The parts of an opened device that planning uses. Copies share these parts. Any thread may use
// one at any time.
struct Planner {
  std::string device;  // its name, for profiler ranges
  attention::DeviceLimits limits;
  device::ContextPointer context;
  std::shared_ptr<jit::KernelCache> kernels;
  std::shared_ptr<tuned::TunedStore> tuned;
  std::shared_ptr<attention::TileCache> tiles;
  std::shared_ptr<attention::DeviceTileCache> device_tiles;
  base::Log log;
  bool check_operands = false;  // whether runs query the driver about the memory of the operands
  // whether the templates are the caller's, DeviceOptions::template_dir
  bool own_templates = false;
  base::Background background = base::Background();  // compiles for plans that do not wait
  std::shared_ptr<LateJobs::UnderWay> late_jobs = std::make_shared<LateJobs::UnderWay>();
  std::shared_ptr<base::Noted> noted =
      std::make_shared<base::Noted>();  // the messages that were already logged once

  // Throws as Device::plan does.
  Prepared prepare(const Request& request) const;

  // Plans with a general kernel, whatever options.config is. The kernel may have to be compiled
  // first. Throws Error{kUnsupported} if there is no general kernel for the problem, and as
  // prepare() does.
  Prepared prepare_general(const Request& request) const;

  // For options that do not wait. If the plan's own kernel is in memory, or if no general kernel
  // supports the problem, it does the same as prepare(). Otherwise it returns a plan with a general
  // kernel, and the plan's own kernel is compiled meanwhile. Throws as prepare() and
  // prepare_general() do.
  PreparedLate prepare_late(const Request& request) const;

  // Throws as Device::memory_needed does.
  MemoryNeeded memory_needed(const Problem& problem, const PlanOptions& options) const;

  // The plan that prepare() would make, without the fields of PlanInfo that need a compiled kernel.
  // The time is predicted for `chip`. Uses no device: context, kernels and device_tiles may be
  // null. Throws as Device::memory_needed does.
  Preview preview(const Problem& problem, const PlanOptions& options,
                  const device::DeviceInfo& chip) const;

  // Stores kernels and lists in the caches where prepare() finds them. Throws as Device::prefetch
  // does.
  void prefetch(const Problem& problem, const PlanOptions& options) const;

  // The kernels that prepare() would use, and the kernels of a plan that needs less memory. Uses no
  // device: context, kernels and device_tiles may be null. Throws as Device::memory_needed does.
  std::vector<jit::KernelSpec> kernels_of(const Request& request) const;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_PLANNER_H_
