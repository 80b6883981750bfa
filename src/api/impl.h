#ifndef ANNULUS_API_IMPL_H_
#define ANNULUS_API_IMPL_H_

// What the public handles hold. The program, tests and benchmarks of this repository may look
// inside; users cannot.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/types.h"
#include "api/attached.h"
#include "api/device_name.h"
#include "attention/tiles/device_tiles.h"
#include "attention/tiles/tile_cache.h"
#include "base/background.h"
#include "base/env.h"
#include "base/log.h"
#include "base/process.h"
#include "base/span.h"
#include "device/context.h"
#include "device/run_timer.h"
#include "device/simulator.h"
#include "jit/arch.h"
#include "jit/kernel_cache.h"
#include "planner/late/followers.h"
#include "planner/planner.h"
#include "shape_log/shape_log.h"
#include "tuned/store.h"

namespace annulus::inline v0 {

struct Device::Impl {
  base::ProcessMark process;
  DeviceInfo info;
  jit::Arch arch;
  device::ContextPointer context;
  std::shared_ptr<const jit::Compiler> compiler;
  std::shared_ptr<jit::DiskCache> disk;
  std::shared_ptr<jit::KernelFolders> folders;  // of kernels compiled ahead
  std::shared_ptr<jit::KernelCache> kernels;
  std::shared_ptr<tuned::TunedStore> tuned;
  std::shared_ptr<attention::TileCache> tiles;
  std::shared_ptr<attention::DeviceTileCache> device_tiles;
  base::Log log;
  base::Background background;
  std::shared_ptr<planner::LateJobs> late_jobs = std::make_shared<planner::LateJobs>();
  std::shared_ptr<base::Noted> noted = std::make_shared<base::Noted>();
  // The caller named no folder of tuned results, and the environment names none either.
  bool lacks_tuned_folder = false;
  bool own_templates = false;                           // DeviceOptions::template_dir
  bool check_operands = false;                          // DeviceOptions::check_operands
  std::shared_ptr<device::RunTimer> timer;              // null: no run is timed
  std::unique_ptr<device::SimulatorLog> simulator_log;  // null where the caller gave no log
  std::shared_ptr<planner::Followers> followers = std::make_shared<planner::Followers>();
  std::shared_ptr<shape_log::ShapeCounts> shape_counts = std::make_shared<shape_log::ShapeCounts>();
  mutable std::atomic<bool> counts_shapes{false};  // whether somebody wants them
  std::shared_ptr<shape_log::ShapeLog> shape_log;  // null: none; writes when it goes
  mutable std::mutex measuring;  // held by the one background tuning that measures
  // The first to go, as it uses all above.
  std::unique_ptr<api::Attached> attached = std::make_unique<api::Attached>();
};

struct Plan::Impl {
  planner::Prepared first;
  std::shared_ptr<planner::LateKernel> late;  // null: `first` is for good
  std::size_t workspace_bytes = 0;
  device::ContextPointer context;
  std::shared_ptr<device::RunTimer> timer{};  // null: no run is timed
  device::RunTimer::SubjectPointer timed{};   // of this plan, where there is a timer
  base::ProcessMark process{};

  std::shared_ptr<planner::LateJobs> late_jobs;  // of the device

  Impl(planner::PreparedLate made, const Device::Impl& device)
      : first(std::move(made.first)),
        late(std::move(made.late)),
        workspace_bytes(made.workspace_bytes),
        context(device.context),
        timer(device.timer),
        late_jobs(device.late_jobs) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (late) late->abandon();
  }

  // What runs use now.
  const planner::Prepared& now() const {
    const planner::Prepared* own = late ? late->own() : nullptr;
    return own != nullptr ? *own : first;
  }

  // Carries out a run: queue() puts its launches on the stream.
  template <typename Queue>
  void run(abi::CUstream stream, const Queue& queue) const {
    const base::Span span("run", now().info.config);
    device::RunTimer::Scope time(timer.get(), stream, timed);
    try {
      queue();
    } catch (...) {
      context->tally().add(base::Count::runs_failed);
      throw;
    }
    time.end();
    context->tally().add(base::Count::runs);
  }
};

struct BoundCall::Impl {
  std::shared_ptr<const Plan::Impl> plan;  // keeps alive what the launches point to
  device::LaunchList launches;
  base::ProcessMark process{};
};

struct DeviceMemory::Impl {
  device::Buffer buffer;
};

}  // namespace annulus::inline v0

namespace annulus::api {

// The device behind a handle. Throws Error{kDevice} in a child of the process that opened it; every
// public function asks before it takes a lock, which another thread of the parent may have held.
const Device::Impl& inside(const Device& device);

// Fills in the fields that the chip and the architecture of its kernels decide.
void describe_chip(const device::DeviceInfo& chip, jit::Arch arch, DeviceInfo* info);

// The limits of a device that planning depends on.
attention::DeviceLimits limits_of(const device::DeviceInfo& info, jit::Arch arch);
attention::DeviceLimits limits_of(const Device::Impl& device);

// The parts of the device that planning uses.
planner::Planner planner_of(const Device::Impl& device);

// Counts what was planned, where anybody wants to know.
void count_shape(const Device::Impl& device, const planner::Request& request);
void count_shape(const Device::Impl& device, const BatchProblem& problem,
                 const BatchOptions& options);

// The caller's log, at the level that it or the environment asks for.
base::Log log_of(const DeviceOptions& options, const base::Environment& environment);

// Where kernels compiled ahead are looked for: `path` is DeviceOptions::kernels_path.
std::vector<std::string> kernel_folders(const std::optional<std::string>& path,
                                        const base::Environment& environment);

// The device that open() chooses where the caller names none, and the reason.
struct DefaultDevice {
  DeviceName name;
  std::string reason;
};
DefaultDevice default_device(const base::Environment& environment);

// A driver for a name: libcuda.so.1, or the simulator.
device::DriverPointer open_driver(const DeviceName& name, const base::Environment& environment);

// The driver's number for a device. Throws Error{kDevice} where there is no such device, naming
// those that there are.
int ordinal_of(const DeviceName& name, const device::Driver& driver);

// Opens a device on a driver that is already open, as the last step of Device::open. Tests call it
// with a driver of their own.
Device open_on(device::DriverPointer driver, const DeviceName& name, const DeviceOptions& options,
               const base::Environment& environment);

// Runs the plan once on the default stream and waits. Returns the time between two events on a GPU,
// and this machine's wall time on a simulated device.
double run_millis(const Device& device, const Plan& plan, const Operands& operands,
                  void* workspace);

}  // namespace annulus::api

#endif  // ANNULUS_API_IMPL_H_
