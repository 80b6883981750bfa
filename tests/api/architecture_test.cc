// The architecture for which kernels are compiled depends on the device, its driver and NVRTC.

#include <doctest/doctest.h>

#include <string>

#include "annulus/device.h"
#include "annulus/types.h"
#include "api/impl.h"
#include "jit/arch.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

Problem hopper_problem() {
  Problem problem;
  problem.seq_q = problem.seq_k = 4096;
  problem.heads = 16;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal();
  return problem;
}

Device open_on(const abi::CudaTable& table, const char* name) {
  DeviceOptions options;
  options.cache_dir = options.tuned_path = "";
  return api::open_on(std::make_shared<const device::Driver>(table, "a simulator"),
                      api::parse_device_name(name), options, base::read_environment());
}

TEST_CASE("an architecture's own features are for devices and drivers with tensor maps") {
  CHECK(jit::arch_for_device(9, 0, true, 13000) == jit::Arch{90, 'a'});
  CHECK(jit::arch_for_device(9, 0, false, 13000) == jit::Arch{90, '\0'});
  CHECK(jit::arch_for_device(9, 0, true, 11080) == jit::Arch{90, '\0'});
  CHECK(jit::arch_for_device(10, 0, true, 13000) == jit::Arch{100, '\0'});
  CHECK(jit::arch_for_device(8, 0, false, 13000) == jit::Arch{80, '\0'});
}

TEST_CASE("the simulated H200 has the wgmma family, and what is no more than sm_90 has not") {
  const Device hopper = open_on(test::simulator_table(), "sim:sm_90a");
  CHECK(hopper.info().architecture == "sm_90a");
  CHECK(hopper.plan(hopper_problem()).info().kernel == "wgmma_forward");

  const Device plain = open_on(test::simulator_table(), "sim:sm_90");
  CHECK(plain.info().architecture == "sm_90");
  const Plan plan = plain.plan(hopper_problem());
  CHECK(plan.info().kernel == "mma_forward");
  REQUIRE(!plan.info().rejected.empty());
  CHECK(plan.info().rejected.front().find("the wgmma family needs sm_90a") != std::string::npos);
  PlanOptions options;
  options.config = "wgmma m128 n128 w8 s2";
  CHECK_THROWS_AS(plain.plan(hopper_problem(), options), Error);
}

TEST_CASE("a driver that makes no tensor maps leaves the mma family") {
  abi::CudaTable table = test::simulator_table();
  table.tensor_map_encode_tiled = nullptr;
  const Device device = open_on(table, "sim:sm_90a");
  CHECK(device.info().architecture == "sm_90");
  CHECK(device.plan(hopper_problem()).info().kernel == "mma_forward");
}

// A device whose driver has this version. Images of newer versions do not load there.
template <int kVersion>
Device old_driver() {
  abi::CudaTable table = test::simulator_table();
  table.driver_get_version = [](int* version) -> abi::CUresult {
    *version = kVersion;
    return abi::kCudaSuccess;
  };
  table.module_load_data = [](abi::CUmodule*, const void*) -> abi::CUresult {
    return abi::kCudaInvalidImage;
  };
  return open_on(table, "sim:sm_90a");
}

std::string refusal(const Device& device, ErrorCode code) {
  try {
    device.plan(hopper_problem());
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "planned";
}

TEST_CASE("a driver older than the kernel's compiler is named") {
  const std::string old = refusal(old_driver<11040>(), ErrorCode::kLibrary);
  CHECK_MESSAGE(
      old.find("The driver is of CUDA 11.4, the kernel was compiled by NVRTC") != std::string::npos,
      old);
  CHECK(old.find("ANNULUS_LIBRARY_PATH name an NVRTC of CUDA 11") != std::string::npos);
  const std::string current = refusal(old_driver<99000>(), ErrorCode::kDevice);
  CHECK_MESSAGE(current.find("The driver is of") == std::string::npos, current);
}

}  // namespace
