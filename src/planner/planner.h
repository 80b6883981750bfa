#ifndef ANNULUS_PLANNER_PLANNER_H_
#define ANNULUS_PLANNER_PLANNER_H_

// From a problem to something that runs. These steps are taken here and nowhere else:
//
//   options -> limits -> choices -> plans -> kernels and lists on the device -> description
//              (choices.h, pure)   (attention/plan, selection, ring: pure)      (describe.h)
//
// A plan, a plan with a selection and a ring take all of them; prefetch stops before the
// description. Where the kernel of a configuration does not work, the steps from the plans on are
// repeated with another: after the tuned one that of the heuristic, then its next choice, then a
// general kernel.

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
  const Selection* selection = nullptr;  // null: none
  // A general kernel serves where no other works; otherwise that is the error of the heuristic's.
  bool general_serves = true;
};

// Throws Error{kInvalidArgument} and Error{kUnsupported} for what no plan can be made of.
void check_request(const Request& request);

// A plan that did not wait.
struct PreparedLate {
  Prepared first;
  std::shared_ptr<LateKernel> late;  // null: `first` is for good
  std::size_t workspace_bytes = 0;   // of both
};

// A plan that has its kernel for good.
PreparedLate for_good(Prepared prepared);

// A plan without its kernels.
struct Preview {
  PlanInfo info;
  PlanPrediction predicted;
};

// The parts of an opened device that planning uses. Copies share; any thread may use one at any
// time.
struct Planner {
  std::string device;  // its name, for notes
  attention::DeviceLimits limits;
  device::ContextPointer context;
  std::shared_ptr<jit::KernelCache> kernels;
  std::shared_ptr<tuned::TunedStore> tuned;
  std::shared_ptr<attention::TileCache> tiles;
  std::shared_ptr<attention::DeviceTileCache> device_tiles;
  base::Log log;
  bool check_operands = false;                       // runs ask the driver about their memory
  bool own_templates = false;                        // the caller's, DeviceOptions::template_dir
  base::Background background = base::Background();  // compiles for plans that do not wait
  std::shared_ptr<LateJobs::UnderWay> late_jobs = std::make_shared<LateJobs::UnderWay>();
  std::shared_ptr<base::Noted> noted =
      std::make_shared<base::Noted>();  // what the log was told once

  // Throws as Device::plan.
  Prepared prepare(const Request& request) const;

  // The problem with a general kernel, whatever options.config. Its kernel may have to be compiled
  // where it was not before. Throws Error{kUnsupported} where there is none for the problem, and as
  // prepare().
  Prepared prepare_general(const Request& request) const;

  // For options that do not wait. Where the plan's own kernel is in memory, or no general kernel
  // serves the problem, as prepare(); else with a general kernel, and the own one under way.
  // Throws as prepare() and prepare_general().
  PreparedLate prepare_late(const Request& request) const;

  // Throws as Device::memory_needed.
  MemoryNeeded memory_needed(const Problem& problem, const PlanOptions& options) const;

  // The plan that prepare() would make, without the fields of PlanInfo that need a compiled kernel.
  // `chip` is what the time is predicted for. Touches no device: context, kernels and
  // device_tiles may be null. Throws as Device::memory_needed.
  Preview preview(const Problem& problem, const PlanOptions& options,
                  const device::DeviceInfo& chip) const;

  // Leaves kernels and lists where prepare() finds them. Throws as Device::prefetch.
  void prefetch(const Problem& problem, const PlanOptions& options) const;

  // The kernels that prepare() would get, and the kernels of a plan that needs less memory. Touches
  // no device: context, kernels and device_tiles may be null. Throws as Device::memory_needed.
  std::vector<jit::KernelSpec> kernels_of(const Request& request) const;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_PLANNER_H_
