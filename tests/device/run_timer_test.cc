#include "device/run_timer.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "base/json.h"
#include "base/span.h"
#include "support/simulator.h"

namespace annulus::device {
namespace {

// The results of the next calls about events, if they are not success.
abi::CUresult query_code = abi::kCudaSuccess;
abi::CUresult elapsed_code = abi::kCudaSuccess;

abi::CudaTable table_with_codes() {
  static const abi::CudaTable real = test::simulator_table();
  abi::CudaTable table = real;
  table.event_query = [](abi::CUevent event) {
    return query_code == abi::kCudaSuccess ? real.event_query(event) : query_code;
  };
  table.event_elapsed_time = [](float* millis, abi::CUevent start, abi::CUevent end) {
    return elapsed_code == abi::kCudaSuccess ? real.event_elapsed_time(millis, start, end)
                                             : elapsed_code;
  };
  return table;
}

ContextPointer open_context() {
  query_code = elapsed_code = abi::kCudaSuccess;
  return Context::retain(std::make_shared<Driver>(table_with_codes(), "the simulator"), 0);
}

RunTimer::SubjectPointer subject() { return std::make_shared<RunTimer::Subject>(); }

void run(RunTimer* timer, const RunTimer::SubjectPointer& subject) {
  RunTimer::Scope scope(timer, nullptr, subject);
  scope.end();
}

TEST_CASE("each run that was to be timed is counted as timed or as untimed, whatever fails") {
  for (abi::CUresult* code : {&query_code, &elapsed_code}) {
    const ContextPointer context = open_context();
    RunTimer timer(context, 1, "a device");
    const RunTimer::SubjectPointer plan = subject();
    query_code = abi::kCudaNotReady;
    for (int i = 0; i < 3; ++i) run(&timer, plan);
    query_code = abi::kCudaSuccess;
    *code = abi::kCudaLaunchFailed;
    CHECK(timer.times(*plan).runs == 0);
    CHECK(context->tally().total(base::Count::timed_runs) == 0);
    CHECK(context->tally().total(base::Count::untimed_runs) == 3);
    *code = abi::kCudaSuccess;
    run(&timer, plan);
    CHECK(timer.times(*plan).runs == 1);
    CHECK(context->tally().total(base::Count::timed_runs) == 1);
    CHECK(context->tally().total(base::Count::untimed_runs) == 3);
  }
}

TEST_CASE("runs that wait for the device are timed until there are 64 of them") {
  const ContextPointer context = open_context();
  RunTimer timer(context, 1, "a device");
  const RunTimer::SubjectPointer plan = subject();
  query_code = abi::kCudaNotReady;
  for (int i = 0; i < 70; ++i) run(&timer, plan);
  CHECK(timer.times(*plan).runs == 0);
  CHECK(context->tally().total(base::Count::untimed_runs) == 6);
  query_code = abi::kCudaSuccess;
  CHECK(timer.times(*plan).runs == 64);
  CHECK(context->tally().total(base::Count::untimed_runs) == 6);
}

TEST_CASE("two timers of a device, as of one that is opened twice, have clocks of their own") {
  const ContextPointer context = open_context();
  base::start_recording(10);
  for (int i = 0; i < 2; ++i) {
    RunTimer timer(context, 1, "a device");
    const std::int64_t before = base::now_nanos();
    run(&timer, subject());
    timer.collect();
    const std::int64_t after = base::now_nanos();
    const base::Json trace = base::Json::parse(base::trace_json());
    const base::Json first = trace.at("traceEvents").at(2);
    REQUIRE(first.at("ph") == "X");
    if (i == 0) {
      // The second run begins after the end of all of this.
      CHECK(first.at("ts").get<double>() * 1e3 >= static_cast<double>(before));
      CHECK(first.at("ts").get<double>() * 1e3 <= static_cast<double>(after));
      continue;
    }
    const base::Json second = trace.at("traceEvents").at(3);
    CHECK(first.at("ts").get<double>() * 1e3 < static_cast<double>(before));
    CHECK(second.at("ts").get<double>() * 1e3 >= static_cast<double>(before));
    CHECK(first.at("tid") == second.at("tid"));
  }
  base::stop_recording();
}

}  // namespace
}  // namespace annulus::device
