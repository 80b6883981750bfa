// Information about the library's work for engines: metrics, times of runs, traces, and ranges for
// a profiler.
#include "annulus/observe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "annulus/ring.h"
#include "annulus/tune.h"
#include "outside/outside.h"

namespace {

using namespace annulus;
using test::check_fails;
using test::Tensors;

DeviceOptions quiet_options() {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = "";
  options.tuned_path = "";
  return options;
}

Problem small_problem() {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 100;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal() & window(40, 0);
  problem.want_lse = true;
  return problem;
}

// Functions of the driver by name.
template <typename Function>
Function entry(const Device& device, const char* name) {
  const auto function = reinterpret_cast<Function>(device.driver_entry(name));
  REQUIRE((function != nullptr));
  return function;
}

TEST_CASE("a device counts what it did, and what it could not do") {
  const Device device = Device::open(quiet_options());
  for (const Metric& metric : list_metrics(device.metrics())) {
    CHECK_MESSAGE(metric.value == 0, metric.name);
  }
  const Problem problem = small_problem();
  Tensors tensors(device, problem, 1);
  const Plan plan = device.plan(problem);
  Metrics now = device.metrics();
  CHECK(now.plans == 1);
  CHECK(now.plan_micros > 0);
  CHECK(now.compiles == 1);
  CHECK(now.kernels == 1);
  CHECK(now.kernels_from_disk == 0);
  CHECK(now.compile_micros >= 1000);
  CHECK(now.longest_compile_micros == now.compile_micros);
  CHECK(now.load_micros > 0);
  CHECK(now.memory_used_bytes == device.memory_statistics().used_bytes);
  CHECK(now.memory_caller_bytes == device.memory_statistics().caller_bytes);
  CHECK(now.memory_caller_bytes > 0);

  CHECK_NOTHROW(device.prefetch(problem));
  const Plan again = device.plan(problem);
  PlanOptions unknown;
  unknown.config = "no such configuration";
  CHECK_THROWS_AS(device.plan(problem, unknown), Error);
  CHECK_THROWS_AS(device.prefetch(problem, unknown), Error);
  plan.run(nullptr, tensors.operands);
  const BoundCall bound = plan.bind(tensors.operands);
  bound.run(nullptr);
  bound.run(nullptr);
  Operands bad = tensors.operands;
  bad.q = nullptr;
  CHECK_THROWS_AS(plan.run(nullptr, bad), Error);
  now = device.metrics();
  CHECK(now.plans == 2);
  CHECK(now.plans_failed == 2);
  CHECK(now.plans_tuned == 0);
  CHECK(now.prefetches == 1);
  CHECK(now.kernel_hits == 2);
  CHECK(now.compiles == 1);
  CHECK(now.binds == 1);
  CHECK(now.runs == 3);
  CHECK(now.runs_failed == 1);
  CHECK(now.timed_runs + now.untimed_runs == 0);
  CHECK(plan.times().runs == 0);

  TuneOptions few;
  few.time_limit_seconds = 1e-9;
  CHECK_NOTHROW(tune(device, problem, few));
  CHECK(device.metrics().tunes == 0);  // there was no time to search
}

TEST_CASE("threads that run side by side are all counted") {
  const Device device = Device::open(quiet_options());
  Problem problem = small_problem();
  problem.seq_q = problem.seq_k = 20;
  const Plan plan = device.plan(problem);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const Tensors tensors(device, problem, i);
      for (int run = 0; run < 20; ++run) plan.run(nullptr, tensors.operands);
      device.synchronize();
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(device.metrics().runs == 100);
}

TEST_CASE("a kernel that was found on disk is no compilation") {
  const test::ScratchFolder folder;
  DeviceOptions options = quiet_options();
  options.cache_dir = folder.path("cache");
  const Problem problem = small_problem();
  Device::open(options).plan(problem);
  const Device second = Device::open(options);
  second.plan(problem);
  const Metrics now = second.metrics();
  CHECK(now.compiles == 0);
  CHECK(now.kernels_from_disk == 1);
  CHECK(now.disk_micros > 0);
}

TEST_CASE("the ranks of a ring are counted on their devices, with what they sent") {
  DeviceOptions options = quiet_options();
  const Device one = Device::open(options);
  options.name = "sim:sm_80:1";
  const Device other = Device::open(options);
  Problem problem = small_problem();
  problem.seq_q = problem.seq_k = 512;
  problem.pattern = causal();
  const std::vector<Device> devices = {one, other, one};
  const RingPlan ring = plan_ring(devices, problem, make_shards(Sharding::kZigzag, 3, 512, 512));
  std::vector<DeviceMemory> workspaces;
  std::vector<Tensors> tensors;
  std::vector<RingCall> calls;
  for (int rank = 0; rank < 3; ++rank) {
    const Device& device = devices[static_cast<std::size_t>(rank)];
    tensors.emplace_back(device, ring.rank_problem(rank), 1u);
    workspaces.push_back(device.allocate(ring.workspace_bytes(rank)));
    calls.push_back({nullptr, tensors.back().operands, workspaces.back().data()});
  }
  ring.run(calls);
  ring.run(calls);
  CHECK_THROWS_AS(ring.run({calls.data(), 2}), Error);
  const RingInfo& info = ring.info();
  const Metrics first = one.metrics(), second = other.metrics();
  CHECK(first.ring_plans == 2);
  CHECK(second.ring_plans == 1);
  CHECK(first.ring_runs == 4);
  CHECK(second.ring_runs == 2);
  CHECK(first.ring_runs_failed == 2);
  CHECK(second.ring_runs_failed == 1);
  CHECK(first.ring_sent_bytes == 2 * (info.ranks[0].bytes_sent + info.ranks[2].bytes_sent));
  CHECK(second.ring_sent_bytes == 2 * info.ranks[1].bytes_sent);
  CHECK(second.ring_sent_bytes > 0);
}

TEST_CASE("memory that was found only by giving unused memory back is counted") {
  DeviceOptions options = quiet_options();
  options.max_device_bytes = 5 << 20;
  const Device device = Device::open(options);
  // Retired memory waits for the device, so the second block needs a third slab.
  { const DeviceMemory large = device.allocate(4 << 20); }
  CHECK(device.metrics().recovered_memory == 0);
  const DeviceMemory larger = device.allocate(5 << 20);
  CHECK(device.metrics().recovered_memory == 1);
}

TEST_CASE("the text is what monitoring systems read: names, types, units, meanings, values") {
  Metrics metrics;
  metrics.plans = 3;
  metrics.plan_micros = 1'500'007;
  metrics.longest_run_micros = 12;
  metrics.memory_held_bytes = 4096;
  const std::string text = metrics_text(metrics, "device=\"sim:sm_80\",host=\"a\"");
  for (const char* lines :
       {"# TYPE annulus_plans counter\n# HELP annulus_plans plans that were made; rings are "
        "counted "
        "apart\nannulus_plans_total{device=\"sim:sm_80\",host=\"a\"} 3\n",
        "# TYPE annulus_plan_seconds counter\n# UNIT annulus_plan_seconds seconds\n",
        "\nannulus_plan_seconds_total{device=\"sim:sm_80\",host=\"a\"} 1.500007\n",
        "# TYPE annulus_longest_run_seconds gauge\n",
        "\nannulus_longest_run_seconds{device=\"sim:sm_80\",host=\"a\"} 0.000012\n",
        "# UNIT annulus_memory_held_bytes bytes\n",
        "\nannulus_memory_held_bytes{device=\"sim:sm_80\",host=\"a\"} 4096\n"}) {
    CHECK_MESSAGE(text.find(lines) != std::string::npos, lines);
  }
  CHECK(metrics_text(metrics).find("\nannulus_plans_total 3\n") != std::string::npos);
  // Each metric occurs once, with a unique name, in lines that begin as the format requires.
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool starts = line.starts_with("# TYPE ") || line.starts_with("# UNIT ") ||
                        line.starts_with("# HELP ") || line.starts_with("annulus_");
    CHECK_MESSAGE(starts, line);
    if (line.starts_with("# TYPE ")) CHECK(names.insert(line).second);
  }
  CHECK(names.size() == list_metrics(metrics).size());
}

TEST_CASE("every second run is timed, but none under capture") {
  DeviceOptions options = quiet_options();
  options.time_every_nth_run = 2;
  const Device device = Device::open(options);
  const Problem problem = small_problem();
  const Tensors tensors(device, problem, 1);
  const Plan plan = device.plan(problem), other = device.plan(problem);
  for (int run = 0; run < 5; ++run) plan.run(nullptr, tensors.operands);
  device.synchronize();
  RunTimes times = plan.times();
  CHECK(times.runs == 3);
  CHECK(times.min_micros > 0);
  CHECK(times.min_micros <= times.last_micros);
  CHECK(times.last_micros <= times.max_micros);
  CHECK(times.total_micros >= times.max_micros + 2 * times.min_micros);
  CHECK(other.times().runs == 0);
  Metrics now = device.metrics();
  CHECK(now.timed_runs == 3);
  CHECK(now.runs == 5);
  CHECK(now.timed_run_micros >= now.longest_run_micros);
  CHECK(now.longest_run_micros > 0);

  const BoundCall bound = other.bind(tensors.operands);
  bound.run(nullptr);  // the sixth run of the device
  bound.run(nullptr);
  device.synchronize();
  CHECK(other.times().runs == 1);

  // A run that fails has no time.
  Operands bad = tensors.operands;
  bad.q = nullptr;
  bound.run(nullptr);
  CHECK_THROWS_AS(plan.run(nullptr, bad), Error);
  CHECK(device.metrics().untimed_runs == 1);
  CHECK(plan.times().runs == 3);

  void* context = nullptr;
  void* stream = nullptr;
  void* graph = nullptr;
  const auto retain = entry<int (*)(void**, int)>(device, "cuDevicePrimaryCtxRetain");
  const auto release = entry<int (*)(int)>(device, "cuDevicePrimaryCtxRelease_v2");
  const auto set_current = entry<int (*)(void*)>(device, "cuCtxSetCurrent");
  REQUIRE(retain(&context, device.info().ordinal) == 0);
  REQUIRE(set_current(context) == 0);
  REQUIRE(entry<int (*)(void**, unsigned)>(device, "cuStreamCreate")(&stream, 0) == 0);
  REQUIRE(entry<int (*)(void*, int)>(device, "cuStreamBeginCapture_v2")(stream, 0) == 0);
  plan.run(stream, tensors.operands);
  plan.run(stream, tensors.operands);
  // Querying times does not break a capture, although it queries events.
  CHECK(other.times().runs == 1);
  CHECK(device.metrics().untimed_runs == 2);
  CHECK(entry<int (*)(void*, void**)>(device, "cuStreamEndCapture")(stream, &graph) == 0);
  CHECK(entry<int (*)(void*)>(device, "cuGraphDestroy")(graph) == 0);
  CHECK(entry<int (*)(void*)>(device, "cuStreamDestroy_v2")(stream) == 0);
  CHECK(set_current(nullptr) == 0);
  CHECK(release(device.info().ordinal) == 0);

  options.time_every_nth_run = -1;
  check_fails(ErrorCode::kInvalidArgument, "time_every_nth_run is -1",
              [&] { Device::open(options); });
}

// The complete events of a trace.
std::vector<nlohmann::json> spans_of(const std::string& text) {
  std::vector<nlohmann::json> spans;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") spans.push_back(event);
  }
  return spans;
}

const nlohmann::json& span_named(const std::vector<nlohmann::json>& spans, const char* name,
                                 const char* category = "host") {
  for (const nlohmann::json& span : spans) {
    if (span.at("name") == name && span.at("cat") == category) return span;
  }
  FAIL("no span '" << std::string(name) << "'");
  return spans.front();
}

bool is_inside(const nlohmann::json& inner, const nlohmann::json& outer) {
  const auto begin = [](const nlohmann::json& span) { return span.at("ts").get<double>(); };
  const auto end = [&](const nlohmann::json& span) {
    return begin(span) + span.at("dur").get<double>();
  };
  return begin(inner) >= begin(outer) && end(inner) <= end(outer) + 0.001 &&
         inner.at("tid") == outer.at("tid") && inner.at("pid") == outer.at("pid");
}

TEST_CASE("a trace has what the process did, span in span, and the runs of the device") {
  CHECK_FALSE(trace_state().recording);
  start_trace();
  CHECK(trace_state().recording);
  DeviceOptions options = quiet_options();
  options.time_every_nth_run = 1;
  const Device device = Device::open(options);
  const Problem problem = small_problem();
  const Tensors tensors(device, problem, 1);
  const Plan plan = device.plan(problem);
  plan.run(nullptr, tensors.operands);
  device.synchronize();
  plan.run(nullptr, tensors.operands);
  device.synchronize();
  CHECK(plan.times().runs == 2);
  stop_trace();
  plan.run(nullptr, tensors.operands);
  CHECK_FALSE(trace_state().recording);
  CHECK(trace_state().lost == 0);

  const test::ScratchFolder folder;
  write_trace(folder.path("trace.json"));
  std::ifstream file(folder.path("trace.json"));
  const std::string written((std::istreambuf_iterator<char>(file)), {});
  CHECK(written == trace_json());
  const std::vector<nlohmann::json> spans = spans_of(written);
  CHECK(static_cast<std::int64_t>(spans.size()) == trace_state().spans);
  const nlohmann::json& planned = span_named(spans, "plan");
  CHECK(planned.at("args").at("detail") == "sim:sm_80");
  CHECK(planned.at("pid") == getpid());
  CHECK(is_inside(span_named(spans, "kernel"), planned));
  CHECK(is_inside(span_named(spans, "compile"), span_named(spans, "kernel")));
  CHECK(span_named(spans, "compile").at("dur").get<double>() > 1000);
  span_named(spans, "open");
  const auto runs = [&](const char* category) {
    return std::count_if(spans.begin(), spans.end(), [&](const nlohmann::json& span) {
      return span.at("name") == "run" && span.at("cat") == category;
    });
  };
  CHECK(runs("host") == 2);
  CHECK(runs("device") == 2);
  const nlohmann::json& on_device = span_named(spans, "run", "device");
  CHECK(on_device.at("args").at("detail") == plan.info().config);
  CHECK(on_device.at("tid") != planned.at("tid"));
  CHECK(on_device.at("dur").get<double>() > 0);
  // The clocks agree: the device began during the host's call or after it.
  CHECK(on_device.at("ts").get<double>() >= span_named(spans, "run").at("ts").get<double>());
  CHECK(on_device.at("ts").get<double>() <= planned.at("ts").get<double>() + 60e6);
  bool has_track = false;
  const nlohmann::json trace = nlohmann::json::parse(written);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    has_track |= event.at("ph") == "M" && event.at("name") == "thread_name" &&
                 event.at("tid") == on_device.at("tid") &&
                 event.at("args").at("name") == "sim:sm_80";
  }
  CHECK(has_track);
}

TEST_CASE("a trace keeps the newest spans, and begins anew") {
  start_trace({.max_spans = 3});
  const Device device = Device::open(quiet_options());
  const Problem problem = small_problem();
  const Tensors tensors(device, problem, 1);
  const Plan plan = device.plan(problem);
  for (int run = 0; run < 4; ++run) plan.run(nullptr, tensors.operands);
  CHECK(trace_state().spans == 3);
  CHECK(trace_state().lost > 1);
  for (const nlohmann::json& span : spans_of(trace_json())) CHECK(span.at("name") == "run");
  start_trace();
  CHECK(trace_state().spans == 0);
  CHECK(spans_of(trace_json()).empty());
  stop_trace();
  for (const std::int64_t spans : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 25}) {
    check_fails(ErrorCode::kInvalidArgument, "max_spans is " + std::to_string(spans),
                [&] { start_trace({.max_spans = spans}); });
  }
  check_fails(ErrorCode::kFile, "/no/such/folder", [] { write_trace("/no/such/folder/t.json"); });
}

TEST_CASE("a child of fork has no trace, and its spans wait for nobody") {
  start_trace();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool refused = false;
    try {
      static_cast<void>(trace_json());
    } catch (const Error& error) {
      refused = error.code() == ErrorCode::kDevice;
    }
    const bool fresh = !trace_state().recording && trace_state().spans == 0;
    // A pattern needs no device. If recording were on, its work would be recorded.
    _exit(refused && fresh ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  stop_trace();
}

TEST_CASE("a profiler that takes NVTX ranges sees the same spans") {
  void* profiler = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(profiler != nullptr);  // Device::open of another test has loaded it
  const auto log = reinterpret_cast<const char* (*)()>(dlsym(profiler, "profiler_log"));
  REQUIRE((log != nullptr));
  std::string text;
  // On a separate thread, which has separate ranges.
  std::thread([&] {
    const Device device = Device::open(quiet_options());
    const Problem problem = small_problem();
    const Tensors tensors(device, problem, 1);
    const Plan plan = device.plan(problem);
    plan.run(nullptr, tensors.operands);
    text = log();
    CHECK(text.ends_with("0 plan: sim:sm_80\n0 run: " + plan.info().config + "\n"));
  }).join();
  CHECK(text.starts_with("0 open: sim:sm_80\n"));
  CHECK(text.find("2 compile: mma_forward\n") != std::string::npos);
  CHECK(text.find("?") == std::string::npos);
  dlclose(profiler);
}

}  // namespace
