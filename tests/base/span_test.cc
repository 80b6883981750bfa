#include "base/span.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"

namespace annulus::base {
namespace {

// The complete events of the trace.
std::vector<Json> events() {
  std::vector<Json> found;
  const Json trace = Json::parse(trace_json());
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") found.push_back(event);
  }
  return found;
}

// The names of the tracks, by their numbers.
std::map<int, std::string> track_names() {
  std::map<int, std::string> names;
  const Json trace = Json::parse(trace_json());
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") != "thread_name") continue;
    CHECK(names.emplace(event.at("tid"), event.at("args").at("name")).second);
  }
  return names;
}

DeviceSpan run_on(std::string_view track, int clock, std::int64_t queued, std::int64_t start,
                  std::int64_t length) {
  return {.name = "run",
          .detail = "",
          .track = track,
          .clock = clock,
          .queued_nanos = queued,
          .device_nanos = start,
          .length_nanos = length};
}

TEST_CASE("clocks of devices that share a track are placed apart") {
  start_recording(10);
  const int first = new_device_clock(), second = new_device_clock();
  CHECK(first != second);
  // A device that was opened, closed, and opened again ten milliseconds later. Its clock started
  // again.
  record(run_on("sim:sm_80", first, 1'000'000, 0, 2000));
  record(run_on("sim:sm_80", second, 11'000'000, 0, 3000));
  record(run_on("sim:sm_80", second, 12'000'000, 1'005'000, 4000));
  stop_recording();
  const std::vector<Json> runs = events();
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].at("ts") == 1000.0);
  CHECK(runs[0].at("dur") == 2.0);
  CHECK(runs[1].at("ts") == 11'000.0);
  CHECK(runs[2].at("ts") == 12'005.0);
  for (const Json& run : runs) CHECK(run.at("tid") == runs[0].at("tid"));
  CHECK(track_names().size() == 1);
}

TEST_CASE("runs that overlap on a device have tracks of their own") {
  start_recording(10);
  const int clock = new_device_clock();
  // Two streams. The runs are read in the order in which they were queued.
  record(run_on("cuda:0", clock, 0, 0, 100'000));
  record(run_on("cuda:0", clock, 0, 50'000, 100'000));
  record(run_on("cuda:0", clock, 0, 100'000, 20'000));
  record(run_on("cuda:0", clock, 0, 60'000, 10'000));
  record(run_on("cuda:1", new_device_clock(), 10'000, 0, 100'000));
  stop_recording();
  std::map<int, double> ends;
  std::map<int, std::string> names = track_names();
  std::vector<std::string> order;
  for (const Json& run : events()) {
    const int track = run.at("tid");
    CHECK(run.at("ts").get<double>() >= ends[track]);
    ends[track] = run.at("ts").get<double>() + run.at("dur").get<double>();
    order.push_back(names.at(track));
  }
  CHECK(order ==
        std::vector<std::string>{"cuda:0", "cuda:1", "cuda:0 (2)", "cuda:0 (3)", "cuda:0"});
  CHECK(names.size() == 4);
}

TEST_CASE("a run that seems to begin within the one before it, by a step of the clock, is behind") {
  start_recording(10);
  const int clock = new_device_clock();
  record(run_on("cuda:0", clock, 0, 0, 10'000));
  record(run_on("cuda:0", clock, 0, 9500, 10'000));
  stop_recording();
  const std::vector<Json> runs = events();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].at("tid") == runs[1].at("tid"));
  CHECK(runs[0].at("dur") == 9.5);
  CHECK(runs[1].at("ts") == 9.5);
  CHECK(track_names().size() == 1);
}

TEST_CASE("a trace has its spans in the order in which they begin, the outer before the inner") {
  start_recording(10);
  {
    const Span outer("outer");
    const Span inner("inner", "a \"detail\"");
    const Span innermost("innermost", "\xff is no UTF-8");
  }
  stop_recording();
  const std::vector<Json> spans = events();
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].at("name") == "outer");
  CHECK(spans[1].at("name") == "inner");
  CHECK(spans[1].at("args").at("detail") == "a \"detail\"");
  CHECK(spans[2].at("name") == "innermost");
}

TEST_CASE("a trace that is read while it is written tells what is kept and lost at one moment") {
  start_recording(4);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; !done; ++i) {
      const std::string number = std::to_string(i);
      const Span span("span", number);
    }
  });
  while (recorded().lost == 0) std::this_thread::yield();
  int torn = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Recorded now = recorded();
    CHECK(now.on);
    CHECK(now.spans == 4);
    const Json trace = Json::parse(trace_json());
    const Json& newest = trace.at("traceEvents").back();
    const std::int64_t lost = trace.at("otherData").at("lost");
    if (std::to_string(lost + 3) != newest.at("args").at("detail")) ++torn;
  }
  done = true;
  writer.join();
  CHECK(torn == 0);
  stop_recording();
}

}  // namespace
}  // namespace annulus::base
