#ifndef ANNULUS_API_IMPL_H_
#define ANNULUS_API_IMPL_H_

// The contents of the public handles. The program, tests and benchmarks of this repository may
// access them; users cannot.

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
  std::shared_ptr<jit::KernelFolders> folders;  // folders of kernels compiled ahead
  std::shared_ptr<jit::KernelCache> kernels;
  std::shared_ptr<tuned::TunedStore> tuned;
  std::shared_ptr<attention::TileCache> tiles;
  std::shared_ptr<attention::DeviceTileCache> device_tiles;
  base::Log log;
  base::Background background;
  std::shared_ptr<planner::LateJobs> late_jobs = std::make_shared<planner::LateJobs>();
  std::shared_ptr<base::Noted> noted = std::make_shared<base::Noted>();
  // The caller named no folder of tuned results, and the environment names none.
  bool lacks_tuned_folder = false;
  bool own_templates = false;                           // DeviceOptions::template_dir is set
  bool check_operands = false;                          // DeviceOptions::check_operands
  std::shared_ptr<device::RunTimer> timer;              // null: no run is timed
  std::unique_ptr<device::SimulatorLog> simulator_log;  // null if the caller gave no log
  std::shared_ptr<planner::Followers> followers = std::make_shared<planner::Followers>();
  std::shared_ptr<shape_log::ShapeCounts> shape_counts = std::make_shared<shape_log::ShapeCounts>();
  mutable std::atomic<bool> counts_shapes{false};  // whether anything reads the counts
  // null: there is no log; its destructor writes the file.
  std::shared_ptr<shape_log::ShapeLog> shape_log;
  mutable std::mutex measuring;  // held by the background tuning that is measuring
  // It is destroyed first, because it uses all members above.
  std::unique_ptr<api::Attached> attached = std::make_unique<api::Attached>();
};

struct Plan::Impl {
  planner::Prepared first;
  std::shared_ptr<planner::LateKernel> late;  // null: `first` stays in use
  std::size_t workspace_bytes = 0;
  device::ContextPointer context;
  std::shared_ptr<device::RunTimer> timer{};  // null: no run is timed
  device::RunTimer::SubjectPointer timed{};   // the runs of this plan, if there is a timer
  base::ProcessMark process{};

  std::shared_ptr<planner::LateJobs> late_jobs;  // owned by the device

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

  // The prepared plan that runs use now.
  const planner::Prepared& now() const {
    const planner::Prepared* own = late ? late->own() : nullptr;
    return own != nullptr ? *own : first;
  }

  // Runs the plan: queue() puts its launches on the stream.
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
  std::shared_ptr<const Plan::Impl> plan;  // keeps everything alive that the launches point to
  device::LaunchList launches;
  base::ProcessMark process{};
};

struct DeviceMemory::Impl {
  device::Buffer buffer;
};

}  // namespace annulus::inline v0

namespace annulus::api {

// The device of a handle. Throws Error{kDevice} in a child of the process that opened it; every
// public function calls this before it takes a lock, because another thread of the parent may have
// held the lock during the fork.
const Device::Impl& inside(const Device& device);

// Sets the fields that follow from the chip and from the architecture of its kernels.
void describe_chip(const device::DeviceInfo& chip, jit::Arch arch, DeviceInfo* info);

// The limits of a device that planning depends on.
attention::DeviceLimits limits_of(const device::DeviceInfo& info, jit::Arch arch);
attention::DeviceLimits limits_of(const Device::Impl& device);

// The parts of the device that planning uses.
planner::Planner planner_of(const Device::Impl& device);

// Counts a planned problem, if anything reads the counts.
void count_shape(const Device::Impl& device, const planner::Request& request);
void count_shape(const Device::Impl& device, const BatchProblem& problem,
                 const BatchOptions& options);

// The caller's log, at the level that the caller or the environment sets.
base::Log log_of(const DeviceOptions& options, const base::Environment& environment);

// The folders in which kernels compiled ahead are searched. `path` is DeviceOptions::kernels_path.
std::vector<std::string> kernel_folders(const std::optional<std::string>& path,
                                        const base::Environment& environment);

// The device that open() chooses if the caller names none, and the reason.
struct DefaultDevice {
  DeviceName name;
  std::string reason;
};
DefaultDevice default_device(const base::Environment& environment);

// The driver for a device name: libcuda.so.1, or the simulator.
device::DriverPointer open_driver(const DeviceName& name, const base::Environment& environment);

// The driver's number for a device. Throws Error{kDevice} if there is no such device, naming the
// devices that exist.
int ordinal_of(const DeviceName& name, const device::Driver& driver);

// Opens a device on a driver that is already open, as the last step of Device::open. Tests call it
// with a driver of their own.
Device open_on(device::DriverPointer driver, const DeviceName& name, const DeviceOptions& options,
               const base::Environment& environment);

// Runs the plan once on the default stream and waits for it. Returns milliseconds: the time between
// two events on a GPU, or the wall time on a simulated device.
double run_millis(const Device& device, const Plan& plan, const Operands& operands,
                  void* workspace);

}  // namespace annulus::api

#endif  // ANNULUS_API_IMPL_H_
