// Makes calls of the driver and of NVRTC fail in whole public flows, one call in each pass:
//
//   fault_driver_calls --for 3600 [--flow NAME]... [--seed N] [--points N] [--cache FOLDER]
//   fault_driver_calls --flow plan_disk --library driver --call 17 --code 999     repeats one pass
//
// The n-th call of a flow returns an error once, for every n. A pass is right in two cases. In the
// first, the flow throws an error that names the call and its code. In the second, nothing is lost
// without the call (kUnheard lists these calls with the reasons), and the answer has the same bits.
// Afterwards the same flow must give the same bits on the same device, and the driver must hold as
// many objects as before. Without --points, all calls are tried. Exit code 1: a pass was wrong.
// Each such pass is printed.

#include <dlfcn.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "annulus/device.h"
#include "annulus/kernels.h"
#include "annulus/types.h"
#include "faults/failing_calls.h"
#include "faults/flows.h"
#include "faults/in_children.h"
#include "faults/options.h"

namespace {

using namespace annulus;
using test::Answer;
using test::FailingCalls;
using test::Flow;
using Clock = std::chrono::steady_clock;

struct Code {
  int number;
  const char* name;
};
constexpr Code kDriverCodes[] = {{999, "CUDA_ERROR_UNKNOWN"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}};
constexpr Code kMemoryCode = {2, "CUDA_ERROR_OUT_OF_MEMORY"};
constexpr Code kNvrtcCodes[] = {{11, "NVRTC_ERROR_INTERNAL_ERROR"},
                                {1, "NVRTC_ERROR_OUT_OF_MEMORY"}};

// Calls whose failure may go unreported, with the reasons.
struct Unheard {
  const char* symbol;
  const char* why;
  bool loses = false;  // the object that was to be released is lost until the context ends
};
constexpr Unheard kUnheard[] = {
    {"cuDevicePrimaryCtxRelease_v2", "a destructor gives back", true},
    {"cuCtxPopCurrent_v2", "the end of a scope, as of a destructor"},
    {"cuMemFree_v2", "a destructor gives back", true},
    {"cuMemFreeHost", "a destructor gives back", true},
    {"cuStreamDestroy_v2", "a destructor gives back", true},
    {"cuEventDestroy_v2", "a destructor gives back", true},
    {"cuModuleUnload", "a destructor gives back", true},
    {"nvrtcDestroyProgram", "a destructor gives back", true},
    {"annulusSimulatorSetLog", "off, in a destructor"},
    {"cuCtxGetCurrent", "destructors enter the context too, before they give something back", true},
    {"cuCtxPushCurrent_v2", "destructors enter the context too, before they give something back",
     true},
    {"cuCtxSynchronize", "the arena's destructor waits; elsewhere its blocks go on waiting"},
    {"cuCtxRecordEvent", "the arena's blocks go on waiting"},
    {"cuEventQuery", "the arena's blocks go on waiting"},
    {"cuMemGetInfo_v2", "the numbers in the text of another error"},
    {"cuDeviceGetAttribute", "an attribute that a driver need not know has a default"},
    {"annulusSimulatorSetPool", "the simulator then sees one allocation, and finds less"},
    {"annulusSimulatorRemoveBlock", "the block goes on waiting"},
    {"annulusSimulatorLastFault", "the text of an error lacks what the simulator says"},
    {"cuCtxGetDevice", "the text of an error lacks what the simulator says"},
    {"nvrtcGetProgramLogSize", "the text of an error lacks the log"},
    {"nvrtcGetProgramLog", "the text of an error lacks the log"},
    {"cuMemAlloc_v2", "an arena asks for less where a slab does not fit"},
    {"cuModuleLoadData", "a kernel of the disk that the driver refuses is compiled anew"},
    {"cuModuleGetFunction", "a kernel of the disk that the driver refuses is compiled anew"},
    {"cuDriverGetVersion", "the report of a library lacks its version; opening it asks once more"},
    {"nvrtcVersion", "an NVRTC that does not tell its version is taken as it is"},
};

const Unheard* may_be_unheard(std::string_view symbol) {
  const auto found =
      std::ranges::find_if(kUnheard, [&](const Unheard& u) { return symbol == u.symbol; });
  return found == std::end(kUnheard) ? nullptr : found;
}

struct Arguments {
  std::vector<std::string> flows;
  double seconds = 1e9;
  std::uint64_t seed = 0;
  std::size_t points = ~std::size_t{0};  // the most points of each flow
  std::string cache;
  std::string library;
  int call = -1;
  int code = 0;
};

// One pass: the library, the call that fails, and its error code.
struct Point {
  bool nvrtc = false;
  int call = 0;
  Code code{};
};

// Results that the child writes for its parent, which lives longer.
struct Shared {
  std::size_t next = 0, tried = 0, errors = 0, unheard = 0, unreached = 0, wrong = 0;
  bool done = false;
  int call = 0, code = 0;
  bool nvrtc = false;
};

class Passes {
 public:
  Passes(const Flow& flow, const Arguments& arguments, Clock::time_point end, Shared& shared)
      : flow_(flow), arguments_(arguments), end_(end), shared_(shared) {}

  void run() {
    const test::Folders folders{arguments_.cache, ""};
    const Device keeper = Device::open(test::options_of(folders));
    driver_ = static_cast<FailingCalls*>(keeper.driver_entry(test::kFailingDriver));
    void* const nvrtc = dlopen(ANNULUS_FAILING_FOLDER "/libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
    nvrtc_ =
        nvrtc == nullptr ? nullptr : static_cast<FailingCalls*>(dlsym(nvrtc, test::kFailingNvrtc));
    if (driver_ == nullptr || nvrtc_ == nullptr) {
      std::printf("WRONG: the failing %s is not the one that was opened\n",
                  driver_ == nullptr ? "driver" : "NVRTC");
      std::fflush(stdout);
      _exit(1);
    }
    body_ = flow_.make(folders);
    const Answer expected = call_body();
    call_body();
    const std::vector<Point> points = points_of();
    for (; shared_.next < points.size() && Clock::now() < end_; ++shared_.next) {
      const Point& at = points[shared_.next];
      shared_.call = at.call;
      shared_.code = at.code.number;
      shared_.nvrtc = at.nvrtc;
      pass(expected, keeper, at);
      // After the failure the device may make fewer calls, for example without a pool. The other
      // calls must still be reached.
      if (driver_->calls() != clean_calls_) {
        body_ = flow_.make(folders);
        call_body();
        call_body();
      }
    }
    shared_.done = true;
  }

  void tell(const std::string& what) const {
    std::printf("WRONG --flow %s --library %s --call %d --code %d: %s\n", flow_.name,
                shared_.nvrtc ? "nvrtc" : "driver", shared_.call, shared_.code, what.c_str());
    std::fflush(stdout);
  }

 private:
  std::vector<Point> points_of() {
    if (arguments_.call >= 0) {
      Code code{arguments_.code, ""};
      for (const Code& each : {kDriverCodes[0], kDriverCodes[1], kMemoryCode}) {
        if (arguments_.library != "nvrtc" && each.number == code.number) code = each;
      }
      for (const Code& each : kNvrtcCodes) {
        if (arguments_.library == "nvrtc" && each.number == code.number) code = each;
      }
      return {{arguments_.library == "nvrtc", arguments_.call, code}};
    }
    driver_->fail_at(-1, 0);
    nvrtc_->fail_at(-1, 0);
    call_body();
    const int driver_calls = driver_->calls(), nvrtc_calls = nvrtc_->calls();
    clean_calls_ = driver_calls;
    std::vector<Point> points;
    for (int i = 0; i < driver_calls; ++i) {
      for (const Code& code : kDriverCodes) points.push_back({false, i, code});
      points.push_back({false, i, kMemoryCode});
    }
    for (int i = 0; i < nvrtc_calls; ++i) {
      for (const Code& code : kNvrtcCodes) points.push_back({true, i, code});
    }
    std::mt19937_64 random(arguments_.seed);
    if (points.size() > arguments_.points) {
      std::ranges::shuffle(points, random);
      points.resize(arguments_.points);
    }
    return points;
  }

  // Runs on a new thread, whose stack of contexts is empty. If leaving a context fails, the context
  // stays current on that thread, and is not entered again.
  Answer call_body() {
    Answer answer;
    std::exception_ptr error;
    std::thread([&] {
      try {
        answer = body_();
      } catch (...) {
        error = std::current_exception();
      }
    }).join();
    if (error) std::rethrow_exception(error);
    return answer;
  }

  void pass(const Answer& expected, const Device& keeper, const Point& at) {
    alarm(600);  // the time limit of each pass
    FailingCalls& library = at.nvrtc ? *nvrtc_ : *driver_;
    const test::HeldCounts driver_held = driver_->held(), nvrtc_held = nvrtc_->held();
    std::string wrong, error_text;
    bool failed = false;
    library.fail_at(at.call, at.code.number);
    Answer answer;
    try {
      answer = call_body();
    } catch (const Error& error) {
      failed = true;
      error_text = error.what();
      if (error.code() == ErrorCode::kInternal) wrong = "called internal: " + error_text;
    } catch (const std::exception& error) {
      failed = true;
      wrong = std::string("no typed error: ") + error.what();
    }
    const char* const symbol = library.failed();
    library.fail_at(-1, 0);
    ++shared_.tried;
    if (symbol == nullptr) {
      ++shared_.unreached;
    } else if (failed) {
      ++shared_.errors;
      if (wrong.empty()) wrong = why_unnamed(symbol, at.code, error_text);
    } else {
      const bool told = answer.told.find(at.code.name) != std::string::npos;
      if (!told && !may_be_unheard(symbol)) {
        wrong = std::string("nobody hears that ") + symbol + " failed";
      }
      if (!told && !(answer == expected))
        wrong = std::string("another answer, as ") + symbol + " failed";
      ++(told ? shared_.errors : shared_.unheard);
    }
    try {
      // Work that was queued before the failure may have failed too.
      if (failed) keeper.synchronize();
    } catch (const Error&) {
    }
    try {
      driver_->fail_at(-1, 0);
      if (wrong.empty() && !(call_body() == expected)) wrong = "another answer afterwards";
    } catch (const std::exception& error) {
      wrong = std::string("the device is not usable afterwards: ") + error.what();
    }
    const Unheard* const unheard = symbol == nullptr || failed ? nullptr : may_be_unheard(symbol);
    if (wrong.empty() && (unheard == nullptr || !unheard->loses)) {
      wrong = more_held(driver_held, nvrtc_held);
      // Something may have been made now and kept for later. Only what is left behind every time is
      // lost.
      if (!wrong.empty()) wrong = left_behind_again(library, at);
      if (!wrong.empty()) {
        wrong =
            std::string("as ") + (symbol ? symbol : "no call") + " failed, left behind:" + wrong;
      }
    }
    if (!wrong.empty()) {
      ++shared_.wrong;
      tell(wrong);
    }
  }

  // Why an error does not name the failed call and its code. Empty if it does.
  static std::string why_unnamed(const char* symbol, const Code& code, const std::string& text) {
    std::string call = symbol;
    if (const std::size_t at = call.rfind("_v2"); at != call.npos) call.resize(at);
    // If memory is short, the text states how much of it is used instead.
    if (code.number == kMemoryCode.number) return "";
    if (text.find(code.name) != text.npos && text.find(call) != text.npos) return "";
    if (may_be_unheard(symbol)) return "";
    return "as " + call + " failed, the error is: " + text;
  }

  std::string left_behind_again(FailingCalls& library, const Point& at) {
    const test::HeldCounts driver_held = driver_->held(), nvrtc_held = nvrtc_->held();
    library.fail_at(at.call, at.code.number);
    try {
      call_body();
    } catch (const std::exception&) {
    }
    library.fail_at(-1, 0);
    call_body();
    return more_held(driver_held, nvrtc_held);
  }

  // The objects that are held now and were not held then. Empty if there are none.
  std::string more_held(const test::HeldCounts& driver_held, const test::HeldCounts& nvrtc_held) {
    const test::HeldCounts driver_now = driver_->held(), nvrtc_now = nvrtc_->held();
    std::string text;
    for (std::size_t i = 0; i < test::kHeldKinds; ++i) {
      const long more = driver_now[i] - driver_held[i] + nvrtc_now[i] - nvrtc_held[i];
      if (more > 0) text += " " + std::to_string(more) + " " + test::kHeldNames[i];
    }
    return text;
  }

  const Flow& flow_;
  const Arguments& arguments_;
  const Clock::time_point end_;
  Shared& shared_;
  FailingCalls* driver_ = nullptr;
  FailingCalls* nvrtc_ = nullptr;
  std::function<Answer()> body_;
  int clean_calls_ = 0;
};

// Returns the number of wrong passes.
std::size_t run_flow(const Flow& flow, const Arguments& arguments, Clock::time_point end) {
  const test::SharedWithChildren<Shared> shared;
  Passes passes(flow, arguments, end, *shared);
  std::size_t ends = 0;
  bool first = true;
  while (!shared->done) {
    const std::size_t before = shared->next;
    const std::string ended = test::run_in_child(600, [&] { passes.run(); });
    if (shared->done) break;
    ++ends;
    passes.tell(ended);
    // Not even one pass was made.
    if (shared->next == before && (first || shared->tried == 0)) break;
    first = shared->next == before;
    ++shared->next;
  }
  std::printf(
      "%-12s %5zu cases: calls failed: %zu errors, %zu unheard, %zu not reached, %zu wrong, %zu "
      "ends of the process\n",
      flow.name, shared->tried, shared->errors, shared->unheard, shared->unreached, shared->wrong,
      ends);
  std::fflush(stdout);
  return shared->wrong + ends;
}

Arguments parse(int argc, char** argv) {
  using test::option;
  Arguments arguments;
  test::read_options(argc, argv,
                     {option("--flow", &arguments.flows), option("--for", &arguments.seconds),
                      option("--seed", &arguments.seed), option("--points", &arguments.points),
                      option("--cache", &arguments.cache), option("--library", &arguments.library),
                      option("--call", &arguments.call), option("--code", &arguments.code)});
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Flow& flow : test::flows()) std::printf("%s\n", flow.name);
    return 0;
  }
  // The failing NVRTC is found before the real one, and gets the real one's path here.
  setenv("ANNULUS_TEST_NVRTC", find_libraries().nvrtc.path.c_str(), 1);
  const char* const folders = std::getenv("ANNULUS_LIBRARY_PATH");
  setenv("ANNULUS_LIBRARY_PATH",
         (ANNULUS_FAILING_FOLDER ":" + std::string(folders == nullptr ? "" : folders)).c_str(), 1);
  Arguments arguments = parse(argc, argv);
  std::string scratch;
  if (arguments.cache.empty()) {
    scratch = (std::filesystem::temp_directory_path() / "annulus-faults-XXXXXX").string();
    if (mkdtemp(scratch.data()) == nullptr) return 2;
    arguments.cache = scratch;
  }
  const std::vector<Flow> chosen = test::flows_of(arguments.flows);
  if (chosen.empty()) return 2;
  std::size_t wrong = 0;
  for (const Flow& flow : chosen) {
    // The time is shared evenly among the flows.
    const auto share =
        std::chrono::duration<double>(arguments.seconds / static_cast<double>(chosen.size()));
    wrong += run_flow(flow, arguments,
                      Clock::now() + std::chrono::duration_cast<Clock::duration>(share));
  }
  if (!scratch.empty()) std::filesystem::remove_all(scratch);
  return wrong == 0 ? 0 : 1;
}
