// Running a plan must allocate nothing and take no lock, in C++ and in C. This program replaces
// malloc and the locks of pthread, and counts their calls. The driver does nothing, so only the
// library's calls are counted.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <barrier>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "annulus/batch.h"
#include "annulus/communicator.h"
#include "annulus/join.h"
#include "annulus/ring.h"
#include "api/impl.h"
#include "c_api/call.h"
#include "device/launches.h"
#include "join/joiner.h"
#include "support/counted_malloc.h"
#include "support/idle_launches.h"
#include "support/simulator.h"

namespace {
thread_local int locks = 0;

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
}  // namespace

extern "C" {
#define LOCKS(function, type)                            \
  int function(type* lock) noexcept {                    \
    static const auto real = next(&function, #function); \
    return ++locks, real(lock);                          \
  }
LOCKS(pthread_mutex_lock, pthread_mutex_t)
LOCKS(pthread_mutex_trylock, pthread_mutex_t)
LOCKS(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCKS(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef LOCKS
}

namespace {

using namespace annulus;
using test::allocations;
using test::IdleLaunches;

// Checks that `run` makes no allocations and takes no locks, a thousand times.
template <typename Run>
void costs_nothing(const Run& run, int launches_each = 1) {
  run();
  const long launches = IdleLaunches::launches;
  allocations = locks = 0;
  for (int i = 0; i < 1000; ++i) run();
  const int allocated = allocations;
  const int locked = locks;
  CHECK(allocated == 0);
  CHECK(locked == 0);
  CHECK(IdleLaunches::launches == launches + 1000 * launches_each);
}

TEST_CASE("the counters count") {
  std::mutex mutex;
  std::shared_mutex shared;
  allocations = locks = 0;
  { const std::lock_guard lock(mutex); }
  { const std::shared_lock lock(shared); }
  { const std::unique_lock lock(shared); }
  void* volatile memory = ::operator new(100);
  ::operator delete(memory);
  const int allocated = allocations;
  const int locked = locks;
  CHECK(allocated == 1);
  CHECK(locked == 3);
}

Device open_idle(const char* name = "sim:sm_80") {
  return api::open_on(std::make_shared<const device::Driver>(
                          IdleLaunches::wrap(test::simulator_table()), "idle launches"),
                      api::parse_device_name(name), {}, base::read_environment());
}

// With tensor maps. A run encodes them, and a bound call already has them.
TEST_CASE("running a plan or a bound call on sm_90a allocates nothing and takes no lock") {
  const Device device = open_idle("sim:sm_90a");
  Problem problem;
  problem.heads = 4;
  problem.seq_q = problem.seq_k = 300;
  problem.kv_heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse("sum(causal, window(63,0))");
  const Plan plan = device.plan(problem);
  CHECK(plan.info().kernel.starts_with("wgmma"));
  const DeviceMemory memory = device.allocate(300 * 4 * 64 * 2);
  const DeviceMemory o = device.allocate(memory.bytes());
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  Operands operands;
  operands.q = operands.k = operands.v = memory.data();
  operands.o = o.data();
  operands.q_strides = operands.o_strides = Strides::bshd(300, 4, 64);
  operands.k_strides = operands.v_strides = Strides::bshd(300, 2, 64);
  const BoundCall bound = plan.bind(operands, workspace.data());
  const std::uintptr_t handle = c_api::bound_calls().insert(std::make_unique<BoundCall>(bound));
  auto* const c = reinterpret_cast<annulus_bound*>(handle);
  IdleLaunches::idle = true;
  for (const bool current : {false, true}) {
    CAPTURE(current);
    IdleLaunches::current = current;
    costs_nothing([&] { plan.run(nullptr, operands, workspace.data()); }, 2);
    costs_nothing([&] { bound.run(nullptr); }, 2);
    annulus_status status = ANNULUS_OK;
    costs_nothing([&] { status = annulus_bound_run(c, nullptr); }, 2);
    CHECK(status == ANNULUS_OK);
  }
  IdleLaunches::idle = false;
  CHECK(annulus_bound_destroy(c) == ANNULUS_OK);
}

TEST_CASE("a step of a batch and appending allocate nothing and take no lock") {
  const Device device = open_idle();
  BatchProblem problem;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.most = {.requests = 4, .rows = 4, .rows_of_one = 1, .keys_of_one = 100};
  const BatchPlan plan = plan_batch(device, problem);
  AppendProblem append;
  append.heads = 1;
  append.dim_qk = append.dim_v = 64;
  append.page_rows = 16;
  append.place = AppendPlace::kRequests;
  append.rotary.order = RotaryOrder::kHalves;
  append.most = problem.most;
  const AppendPlan appending = plan_append(device, append);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  std::vector<DeviceMemory> memory;  // Q, new K, new V, the pages of K and V, and numbers
  for (int i = 0; i < 6; ++i) memory.push_back(device.allocate(1 << 16));

  AppendOperands rows;
  rows.q = rows.rotated_q = memory[0].data();
  rows.new_k = memory[1].data(), rows.new_v = memory[2].data();
  rows.k = memory[3].data(), rows.v = memory[4].data();
  rows.q_strides = rows.rotated_q_strides = rows.new_k_strides = rows.new_v_strides = {64, 64};
  rows.k_strides = rows.v_strides = {1024, 64, 64};
  const auto* const numbers = static_cast<const std::int32_t*>(memory[5].data());
  rows.step.q_begin = numbers, rows.step.k_length = numbers + 5;
  rows.step.k_pages = {numbers + 9, nullptr, 7};
  BatchOperands operands;
  operands.q = operands.o = memory[0].data();
  operands.k = rows.k, operands.v = rows.v;
  operands.q_strides = operands.o_strides = rows.q_strides;
  operands.k_strides = operands.v_strides = rows.k_strides;

  IdleLaunches::idle = true;
  for (const bool current : {false, true}) {
    CAPTURE(current);
    IdleLaunches::current = current;
    costs_nothing([&] { plan.prepare(nullptr, rows.step, workspace.data()); });
    costs_nothing([&] { appending.run(nullptr, rows); });
    costs_nothing([&] { plan.run(nullptr, operands, workspace.data()); });
  }
  IdleLaunches::idle = false;
}

TEST_CASE("running a plan allocates nothing and takes no lock") {
  const Device device = open_idle();
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 300;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal() & (window(100, 0) | sink(3));
  problem.want_lse = true;
  const Plan plan = device.plan(problem);
  const DeviceMemory memory = device.allocate(2 * 300 * 4 * 64 * 2);
  const DeviceMemory o = device.allocate(memory.bytes());
  const DeviceMemory lse = device.allocate(2 * 300 * 4 * 4);

  Operands operands;
  operands.q = operands.k = operands.v = memory.data();
  operands.o = o.data();
  operands.lse = static_cast<float*>(lse.data());
  operands.q_strides = operands.o_strides = Strides::bshd(300, 4, 64);
  operands.k_strides = operands.v_strides = Strides::bhsd(300, 2, 64);

  annulus_operands c = ANNULUS_OPERANDS_INIT;
  c.q = c.k = c.v = memory.data();
  c.o = o.data();
  c.lse = operands.lse;
  c.q_strides = c.o_strides = {300 * 4 * 64, 64, 4 * 64};
  c.k_strides = c.v_strides = {300 * 2 * 64, 300 * 64, 64};
  auto* const handle = reinterpret_cast<annulus_plan*>(
      c_api::plans().insert(std::make_unique<c_api::PlanObject>(plan)));

  Selection selection;
  selection.max_blocks = 2;
  selection.coarse_factor = 2;
  selection.coarse_blocks = 1;
  const Plan choosing = device.plan(problem, selection);
  const DeviceMemory workspace = device.allocate(choosing.workspace_bytes());
  SelectionBuffers buffers;
  buffers.chosen = static_cast<std::int32_t*>(o.data());
  buffers.max_chosen = 3;
  const BoundCall bound = choosing.bind(operands, workspace.data(), buffers);

  IdleLaunches::idle = true;
  for (const bool current : {false, true}) {
    CAPTURE(current);
    IdleLaunches::current = current;
    costs_nothing([&] { plan.run(nullptr, operands); });
    annulus_status status = ANNULUS_OK;
    costs_nothing([&] { status = annulus_plan_run(handle, nullptr, &c, nullptr); });
    CHECK(status == ANNULUS_OK);
    // Launches: pool, score and choose, coarse and fine; count, order and list; write out; attend.
    costs_nothing([&] { choosing.run(nullptr, operands, workspace.data(), buffers); }, 11);
    costs_nothing([&] { bound.run(nullptr); }, 11);
  }
  IdleLaunches::idle = false;
  CHECK(annulus_plan_destroy(handle) == ANNULUS_OK);
}

TEST_CASE("running a ring allocates nothing and takes no lock") {
  const std::vector<Device> devices(3, open_idle());
  Problem problem;
  problem.seq_q = problem.seq_k = 384;
  problem.dim_qk = problem.dim_v = 64;
  const RingPlan ring =
      plan_ring(devices, problem, make_shards(Sharding::kContiguous, 3, 384, 384));
  const DeviceMemory memory = devices[0].allocate(384 * 64 * 2);
  const DeviceMemory o = devices[0].allocate(memory.bytes());
  std::vector<DeviceMemory> workspaces;
  std::vector<RingCall> calls(3);
  for (int rank = 0; rank < 3; ++rank) {
    RingCall& call = calls[static_cast<std::size_t>(rank)];
    workspaces.push_back(devices[0].allocate(ring.workspace_bytes(rank)));
    call.workspace = workspaces.back().data();
    Operands& operands = call.operands;
    operands.q = operands.k = operands.v = memory.data();
    operands.o = o.data();
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
        Strides::bshd(128, 1, 64);
  }
  int launches = 0;
  for (const RingRankInfo& rank : ring.info().ranks) launches += rank.launches;
  CHECK(launches == 15);  // its own keys, and two halves of each other shard
  IdleLaunches::idle = true;
  costs_nothing([&] { ring.run(calls); }, launches + 3);  // one more launch packs each rank's rows
  IdleLaunches::idle = false;
}

TEST_CASE("running a rank of a ring, and joining, allocate nothing of their own and take no lock") {
  const Device device = open_idle();
  const Communicator alone =
      Communicator::open(device, make_communicator_id(device), 1, 0, {.blocking = true});
  Problem problem;
  problem.seq_q = problem.seq_k = 128;
  problem.dim_qk = problem.dim_v = 64;
  const RingRankPlan ring =
      plan_ring(device, alone, problem, make_shards(Sharding::kContiguous, 1, 128, 128));
  const DeviceMemory memory = device.allocate(128 * 64 * 2);
  const DeviceMemory o = device.allocate(memory.bytes());
  RingCall call;
  call.operands.q = call.operands.k = call.operands.v = memory.data();
  call.operands.o = o.data();
  call.operands.q_strides = call.operands.k_strides = call.operands.v_strides =
      call.operands.o_strides = Strides::bshd(128, 1, 64);
  // One rank of three, whose messages are dropped. NCCL's own work is not counted.
  const JoinProblem joined = {
      .heads = 4, .dim_v = 64, .max_rows = 32, .slices = JoinedSlices::kHeads};
  const Device::Impl& inside = api::inside(device);
  const join::Joiner joiner(*inside.kernels, inside.arch, joined, 3, 1);
  const DeviceMemory workspace =
      device.allocate(static_cast<std::size_t>(joiner.workspace_bytes()));
  const DeviceMemory lse = device.allocate(32 * 4 * 4);
  JoinOperands operands;
  operands.rows = 32;
  operands.o = memory.data();
  operands.lse = static_cast<const float*>(lse.data());
  operands.o_strides = {256, 64};
  operands.lse_strides = {4, 1};
  operands.joined_o = o.data();
  operands.joined_o_strides = {64, 64};
  device::StreamSink stream(nullptr);
  int exchanges = 0;
  const join::Exchange exchange = [&](auto, auto) { ++exchanges; };
  IdleLaunches::idle = true;
  costs_nothing([&] { ring.run(call); });
  costs_nothing([&] { joiner.run(stream, operands, workspace.data(), exchange); }, 2);
  IdleLaunches::idle = false;
  CHECK(exchanges == 1001);
}

TEST_CASE("posting a position to other ranks allocates nothing and takes no lock") {
  std::vector<std::vector<std::byte>> shared(2);
  std::barrier<> both(2);
  const auto meet = [&](int rank) {
    const AllGather all_gather = [&, rank](std::span<const std::byte> own) {
      shared[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
      both.arrive_and_wait();
      return shared;
    };
    return Rendezvous::over(
        all_gather, {.address = "", .rank = rank, .ranks = 2, .token = "", .interface = ""});
  };
  std::thread other([&] { meet(1).all_gather({}, std::chrono::seconds(20)); });
  {
    const Rendezvous ranks = meet(0);
    std::int64_t run = 0;
    costs_nothing([&] { ranks.post({0, ++run, 0}); }, 0);
    ranks.all_gather({}, std::chrono::seconds(20));
  }
  other.join();
}

}  // namespace
