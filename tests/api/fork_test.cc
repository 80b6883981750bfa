// A child of fork has only one thread of its parent. A lock that another thread held stays locked.
// So the functions of a device refuse a child before they take a lock.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "annulus/c.h"
#include "annulus/device.h"
#include "annulus/layout.h"
#include "annulus/ring.h"
#include "annulus/tune.h"
#include "annulus/types.h"

namespace {

using namespace annulus;

// An alarm ends a child that hangs, so it does not exit with 0.
template <typename Body>
bool passes_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <typename Call>
bool is_refused(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kDevice &&
           std::string(error.what()).find("fork") != std::string::npos;
  }
  return false;
}

Problem small_problem() {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.seq_q = problem.seq_k = 64;
  problem.dim_qk = problem.dim_v = 64;
  return problem;
}

TEST_CASE("a child of the process that opened a device is refused, whatever its parent was doing") {
  // While the process forks, a thread of the parent is in the look-up of tuned results and holds
  // its lock, because its log callback does not return.
  std::atomic<bool> inside{false}, go_on{false};
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.tuned_path = "no absolute path";
  options.log = [&](LogLevel, std::string_view text) {
    if (text.find("tuned") == std::string_view::npos) return;
    inside = true;
    while (!go_on) std::this_thread::yield();
  };
  const Device device = Device::open(options);
  const Problem problem = small_problem();
  std::thread planner([&] { device.plan(problem); });
  while (!inside) std::this_thread::yield();
  CHECK(passes_in_child([&] { return is_refused([&] { device.plan(problem); }); }));
  CHECK(passes_in_child([&] { return is_refused([&] { device.prefetch(problem); }); }));
  CHECK(passes_in_child([&] { return is_refused([&] { tune(device, problem); }); }));
  CHECK(passes_in_child([&] {
    const std::vector<Device> devices(2, device);
    return is_refused([&] {
      plan_ring(devices, problem,
                make_shards(Sharding::kContiguous, 2, problem.seq_q, problem.seq_k));
    });
  }));
  go_on = true;
  planner.join();
  const Plan plan = device.plan(problem);
  CHECK(passes_in_child([&] {
    return is_refused([&] { plan.run(nullptr, {}); }) && is_refused([&] { plan.bind({}); }) &&
           is_refused([&] { device.allocate(1); }) && is_refused([&] { device.synchronize(); }) &&
           is_refused([&] { device.counters(); }) && is_refused([&] { device.list_counters(); }) &&
           is_refused([&] { device.set_simulation({}); }) &&
           is_refused([&] { device.copy_to_host(nullptr, nullptr, 0); });
  }));
  CHECK(plan.info().kernel.size() > 0);
}

TEST_CASE("a child's calls through C are refused with the same reason") {
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  options.name = "sim:sm_80";
  annulus_device* device = nullptr;
  REQUIRE(annulus_device_open(&options, &device) == ANNULUS_OK);
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.heads = problem.kv_heads = 1;
  problem.seq_q = problem.seq_k = 64;
  problem.dim_qk = problem.dim_v = 64;
  const auto refused = [](annulus_status status) {
    return status == ANNULUS_DEVICE &&
           std::string(annulus_last_error()).find("fork") != std::string::npos;
  };
  annulus_plan* plan = nullptr;
  CHECK(passes_in_child([&] {
    void* memory = nullptr;
    return refused(annulus_plan_create(device, &problem, nullptr, &plan)) &&
           refused(annulus_device_allocate(device, 64, &memory)) &&
           refused(annulus_device_synchronize(device)) && refused(annulus_device_close(device));
  }));
  CHECK(annulus_plan_create(device, &problem, nullptr, &plan) == ANNULUS_OK);
  CHECK(annulus_plan_destroy(plan) == ANNULUS_OK);
  CHECK(annulus_device_close(device) == ANNULUS_OK);
}

TEST_CASE("a layout cache of the parent is refused, and one of the child's own works") {
  LayoutCache cache;
  const LayoutQuery query(Pattern::parse("causal"), 64, 64);
  cache.get(query, 256, 256);
  CHECK(passes_in_child([&] {
    LayoutCache own;
    return is_refused([&] { cache.get(query, 256, 256); }) && own.get(query, 256, 256) != nullptr;
  }));
}

}  // namespace
