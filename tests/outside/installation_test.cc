// The installed files, and the libraries that would be opened, queried before any device is open.
#include "annulus/kernels.h"

#include "outside/outside.h"
#include "outside/variable.h"

namespace {

using namespace annulus;
using test::Variable;

TEST_CASE("libraries: what is used, or what is wrong and where it was looked for") {
  const Variable path("ANNULUS_LIBRARY_PATH", "/nonexistent/folder");
  const LibraryReports found = find_libraries();
  for (const LibraryReport* each : {&found.cuda, &found.simulator, &found.nvrtc, &found.nccl}) {
    CAPTURE(each->name);
    CHECK_FALSE(each->name.empty());
    CHECK(each->usable() == each->problem.empty());
    if (each->usable()) CHECK_FALSE(each->path.empty());
    bool named = false;
    for (const LibraryAttempt& attempt : each->tried) {
      CHECK_FALSE(attempt.outcome.empty());
      named = named || attempt.where == "/nonexistent/folder";
    }
    CHECK((named || each == &found.simulator));  // the simulator lies next to libannulus.so
  }
  // The other tests of this program need these.
  CHECK(found.simulator.usable());
  CHECK(found.simulator.simulated);
  CHECK(found.nvrtc.usable());
  CHECK(found.nvrtc.version_text == test::device().info().nvrtc_version);
  CHECK_FALSE(found.nvrtc.simulated);
}

TEST_CASE("devices are listed as they are once they are open") {
  const DeviceListing here = list_devices();
  CHECK(here.devices.empty() == !here.problem.empty());

  // The simulator's libcuda.so.1 acts as a driver with devices.
  const Variable path("ANNULUS_LIBRARY_PATH", ANNULUS_LIBCUDA_FOLDER);
  CHECK(find_libraries().cuda.simulated);
  const DeviceListing listing = list_devices();
  CHECK(listing.problem.empty());
  REQUIRE(listing.devices.size() > 8);
  for (const std::size_t index : {0, 8}) {
    const ListedDevice& listed = listing.devices[index];
    CAPTURE(listed.name);
    CHECK(listed.name == "cuda:" + std::to_string(index));
    const DeviceInfo info = Device::open(listed.name).info();
    CHECK(listed.name == info.name);
    CHECK(listed.description == info.description);
    CHECK(info.architecture.starts_with("sm_" + std::to_string(listed.compute_capability)));
    CHECK(listed.simulated);
    CHECK(listed.multiprocessors == info.multiprocessors);
    CHECK(listed.shared_bytes_per_block == info.shared_bytes_per_block);
    CHECK(listed.memory_bytes == info.memory_bytes);
  }
  CHECK(listing.devices[0].compute_capability != listing.devices[8].compute_capability);
}

TEST_CASE("the choice of a device: by name, by the environment, by what there is") {
  CHECK(choose_device("sim:sm_80:0").name == "sim:sm_80");
  CHECK(choose_device("cuda:07").name == "cuda:7");
  CHECK(choose_device("cuda:07").reason == "the caller named it");
  test::check_fails(ErrorCode::kInvalidArgument, "'gpu' names no device",
                    [] { choose_device("gpu"); });
  {
    const Variable asked("ANNULUS_DEVICE", "sim:sm_90:3");
    CHECK(choose_device().name == "sim:sm_90:3");
    CHECK(choose_device().reason.find("ANNULUS_DEVICE") != std::string::npos);
    CHECK(choose_device("sim:sm_80").name == "sim:sm_80");
  }
  {
    const Variable asked("ANNULUS_DEVICE", "garbage");
    test::check_fails(ErrorCode::kInvalidArgument, "'garbage'", [] { choose_device(); });
  }
  const Variable asked("ANNULUS_DEVICE", "");
  const DeviceChoice chosen = choose_device();
  CHECK(chosen.name == (list_devices().devices.empty() ? "sim:sm_90a" : "cuda:0"));
  CHECK_FALSE(chosen.reason.empty());
  const Variable path("ANNULUS_LIBRARY_PATH", ANNULUS_LIBCUDA_FOLDER);
  CHECK(choose_device().name == "cuda:0");
}

TEST_CASE("compiled kernels are counted in the folder that a device keeps them in") {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path("kernels");
  const KernelListing before = list_kernels(folder);
  CHECK(before.usable);
  CHECK(before.problem.empty());
  CHECK(before.folder == folder);
  CHECK(before.kernels == 0);
  CHECK(before.bytes == 0);

  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = folder;
  Problem problem;
  problem.seq_q = problem.seq_k = 64;
  problem.dim_qk = problem.dim_v = 32;
  const Device device = Device::open(options);
  device.plan(problem);
  const KernelListing after = list_kernels(folder);
  CHECK(after.kernels == 1);
  REQUIRE(after.sets.size() == 1);
  CHECK(after.sets[0].kernels == 1);
  CHECK(after.sets[0].origin == device.info().kernel_origin);
  CHECK(after.sets[0].origin != Device::open("sim:sm_90a").info().kernel_origin);
  CHECK(after.bytes > 1000);
  {
    const Variable named("ANNULUS_CACHE_DIR", folder);
    CHECK(list_kernels().kernels == 1);
  }
  const KernelListing none = list_kernels("");
  CHECK_FALSE(none.usable);
  CHECK_FALSE(none.problem.empty());
  const KernelListing refused = list_kernels("/proc/kernels");
  CHECK_FALSE(refused.usable);
  CHECK(refused.problem.find("/proc/kernels") != std::string::npos);
}

TEST_CASE("the density of pairs counts what a problem's queries see, not blocks or branches") {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 200;
  problem.dim_qk = problem.dim_v = 64;
  CHECK(pair_density(problem).value == 1);
  problem.pattern = causal();
  CHECK(pair_density(problem).value == doctest::Approx(201.0 / 400));
  problem.q0 = -200;  // before all keys
  CHECK(pair_density(problem).value == 0);
  problem.q0.reset();
  problem.pattern = sum({causal(), causal() & window(0, 0)});
  CHECK(pair_density(problem).value == doctest::Approx(201.0 / 400));
  problem.pattern = heads({causal(), dense()});
  CHECK(pair_density(problem).value == doctest::Approx((201.0 / 400 + 1) / 2));
  problem.seq_k = 0;
  CHECK(pair_density(problem).value == 0);
  problem.seq_q = -1;
  test::check_fails(ErrorCode::kInvalidArgument, "seq_q", [&] { pair_density(problem); });
}

}  // namespace
