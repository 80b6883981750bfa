// Collects results on a GPU that is available for minutes only. tools/gpu_check starts this program
// in the folder with everything that it runs (gpu/calls.h), and explains its use.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "gpu/calls.h"

namespace {

using namespace annulus::gpu;
namespace fs = std::filesystem;

constexpr const char* kUsage =
    "usage: gpu_check right|fast|six [--output DIR] [--seconds N] [--device cuda:0] [--rehearse]\n"
    "                 [--tune-seconds N] [--kit DIR] [--shape-log FILE]\n";

// The exit codes for the shell.
enum Exit { kGood = 0, kWrong = 1, kUsageError = 2, kNoGpu = 3 };

struct Options {
  std::string call, output, device;
  std::string kit, shape_log;
  double seconds = 240;
  double tune_seconds = -1;  // negative: the default of the call
  bool rehearse = false;
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "gpu_check: %s\n%s", why.c_str(), kUsage);
  std::exit(kUsageError);
}

double number(const std::string& name, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0) || value > 1e6) {
    refuse(name + " is '" + text + "'; give a number of seconds from 0 to 1000000");
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help") {
      std::printf("%s", kUsage);
      std::exit(kGood);
    }
    if (word == "--rehearse") {
      options.rehearse = true;
      continue;
    }
    if (!word.starts_with("--")) {
      if (!options.call.empty()) refuse("'" + word + "' is one word too many");
      options.call = word;
      continue;
    }
    if (i + 1 == argc) refuse("'" + word + "' is not an option, or lacks its value");
    const char* value = argv[++i];
    if (word == "--output") {
      options.output = value;
    } else if (word == "--device") {
      options.device = value;
    } else if (word == "--kit") {
      options.kit = value;
    } else if (word == "--shape-log") {
      options.shape_log = value;
    } else if (word == "--seconds") {
      options.seconds = number(word, value);
    } else if (word == "--tune-seconds") {
      options.tune_seconds = number(word, value);
    } else {
      refuse("'" + word + "' is not an option");
    }
  }
  if (options.call != "right" && options.call != "fast" && options.call != "six") {
    refuse(options.call.empty() ? "no call is given" : "'" + options.call + "' is not a call");
  }
  if (options.output.empty()) refuse("--output is missing: the folder for what is found");
  return options;
}

std::string absolute(const std::string& path) { return fs::absolute(path).string(); }

std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The python that a user's shell would run. Empty if there is none.
std::string find_python() {
  std::vector<std::string> candidates = {"python3"};
  // With an absolute path instead, this would be /bin/python3, which may not be the first on PATH.
  const std::string own = environment("VIRTUAL_ENV");
  if (!own.empty()) candidates.insert(candidates.begin(), own + "/bin/python3");
  for (const std::string& python : candidates) {
    if (!lines_of({.words = {python, "--version"}, .variables = {}}, 10).empty()) return python;
  }
  return "";
}

// The folders of its wheels that contain NVRTC, for ANNULUS_LIBRARY_PATH.
std::vector<std::string> nvrtc_folders(const std::string& python) {
  constexpr const char* kAsk = R"(
import glob, os, site, sysconfig
places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
for place in dict.fromkeys(places):
    for file in sorted(glob.glob(place + "/nvidia/*/lib/libnvrtc.so*")):
        print(os.path.dirname(file))
)";
  return lines_of({.words = {python, "-c", kAsk}, .variables = {}}, 10);
}

// A folder that is removed with the process, in the first place in which it can be made. Without
// it, kernels are kept in memory only, and golden programs and the tuner leave no results.
class Scratch {
 public:
  Scratch() {
    for (const std::string& place :
         {environment("TMPDIR"), std::string("/tmp"), std::string("/dev/shm")}) {
      std::string name = place + "/gpu_check-XXXXXX";
      if (place.empty() || mkdtemp(name.data()) == nullptr) continue;
      path_ = fs::absolute(name).string();
      return;
    }
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path() const { return path_.empty() ? "/nonexistent" : path_; }

 private:
  std::string path_;
};

Kit make_kit(const Options& options, const Scratch& scratch) {
  Kit kit;
  kit.folder =
      absolute(options.kit.empty() ? fs::read_symlink("/proc/self/exe").parent_path().string()
                                   : options.kit);
  for (const char* needed : {"annulus", "device_tests", "micro_tests", "gpu_questions", "gpu_bench",
                             "golden_programs", "right.lines", "tests.txt", "tune.shapes"}) {
    if (!fs::exists(kit.path(needed))) {
      refuse(kit.path(needed) + " is missing: start it by tools/gpu_check");
    }
  }
  kit.scratch = scratch.path();
  kit.shape_log = options.shape_log;
  kit.rehearsal = options.rehearse;
  kit.device = !options.device.empty() ? options.device : kit.rehearsal ? "sim:sm_90a" : "cuda:0";
  kit.python = find_python();
  std::string libraries = environment("ANNULUS_LIBRARY_PATH");
  if (!kit.python.empty()) {
    // Only looks for PyTorch, because an import may take long. A peer without a GPU reports that
    // itself.
    const std::string ask = "import importlib.util as u; u.find_spec('torch') and print('there')";
    kit.torch = !lines_of({.words = {kit.python, "-c", ask}, .variables = {}}, 10).empty();
    for (const std::string& folder : nvrtc_folders(kit.python)) libraries += ":" + folder;
  }
  std::string kernels = environment("ANNULUS_KERNELS");
  if (kernels.empty()) kernels = kit.path("kernels");
  kit.variables = {"ANNULUS_LIBRARY_PATH=" + libraries, "ANNULUS_KERNELS=" + kernels,
                   "ANNULUS_TUNED=none"};
  // If the user has named a folder, compiled kernels stay there.
  if (environment("ANNULUS_CACHE_DIR").empty()) {
    kit.variables.push_back("ANNULUS_CACHE_DIR=" + kit.scratch + "/kernels");
  }
  if (kit.rehearsal && environment("ANNULUS_SIMULATOR_OPTIONS").empty()) {
    kit.variables.push_back("ANNULUS_SIMULATOR_OPTIONS=checked=0");
  }
  return kit;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The output of annulus doctor, or null if it prints nothing in the given seconds. Its exit code is
// an error if the device has a problem, and then its output names the problem.
Json doctor_of(const Kit& kit, double seconds) {
  const Json json = Json::parse(joined(lines_of(kit.command({kit.path("annulus"), "doctor",
                                                             "--device", kit.device, "--json"}),
                                                seconds, Failing::kCounts)),
                                nullptr, false);
  return json.is_object() ? json : Json();
}

// Whether the device may be a usable GPU. If the doctor prints nothing about it, the call
// continues, and the first kernel decides.
bool may_be_gpu(const Kit& kit, const Json& doctor) {
  const Json device = doctor.is_object() ? doctor.value("device", Json()) : Json();
  if (!device.is_object() || !device.contains("problem") || !device["problem"].is_string()) {
    std::fprintf(stderr, "gpu_check: annulus doctor does not list %s; the steps are run anyway\n",
                 kit.device.c_str());
    return true;
  }
  const std::string problem = device["problem"];
  if (problem.empty() && device.value("simulated", Json()) != true) return true;
  std::fprintf(stderr, "gpu_check: %s is not a GPU: %s\n", kit.device.c_str(),
               problem.empty() ? "the driver that was found is simulated; take its folder out of "
                                 "ANNULUS_LIBRARY_PATH and LD_LIBRARY_PATH"
                               : problem.c_str());
  return false;
}

// The name of the GPU, its driver, clocks, power and memory, as nvidia-smi prints them.
std::string gpu_text() {
  constexpr double kSeconds = 15;
  const auto lines = lines_of(
      {.words = {"nvidia-smi",
                 "--query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,"
                 "memory.total",
                 "--format=csv,noheader"},
       .variables = {}},
      kSeconds);
  return lines.empty() ? "" : lines.front();
}

// Facts about the machine that are known before any step runs.
struct Machine {
  std::string gpu;
  Json doctor;
};

Json head(const Options& options, const Kit& kit, const Machine& machine, const char* call,
          double seconds) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"kind", "gpu_check"},
          {"schema", 2},
          {"call", call},
          {"as", options.call},
          {"commit", read_word(kit.path("commit"))},
          {"date", date},
          {"seconds", seconds},
          {"rehearsal", kit.rehearsal},
          {"device", kit.device},
          {"pytorch", kit.torch},
          {"gpu", machine.gpu},
          {"doctor", machine.doctor}};
}

// Runs one of the two calls within its seconds.
Tally call(const Options& options, const Kit& kit, const Machine& machine, const char* name,
           double seconds, double tune_seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  Results results(options.output, name);
  results.begin(head(options, kit, machine, name, seconds));
  const Tally tally =
      run_groups(std::string(name) == "right" ? right_groups(kit, results)
                                              : fast_groups(kit, seconds, tune_seconds, results),
                 deadline, results);
  std::printf("%s: %d passed, %d did not, %d had no time, %d were there before\n", name,
              tally.passed, tally.failed, tally.not_begun, tally.earlier);
  return tally;
}

int run(const Options& options) {
  const auto begin = Clock::now();
  const Scratch scratch;
  const Kit kit = make_kit(options, scratch);
  const auto left = [&] {
    return std::max(1.0,
                    options.seconds - std::chrono::duration<double>(Clock::now() - begin).count());
  };
  constexpr double kDoctorSeconds = 60;
  const Machine machine = {kit.rehearsal ? "" : gpu_text(),
                           doctor_of(kit, std::min(kDoctorSeconds, left()))};
  if (!kit.rehearsal && !may_be_gpu(kit, machine.doctor)) return kNoGpu;
  int failed = 0;
  if (options.call != "fast") {
    // The call "six" has less than six minutes, because starting the machine takes a part of them.
    // It runs the beginning of "right" and then the beginning of "fast".
    const double share = options.call == "six" ? left() * 0.4 : left();
    failed += call(options, kit, machine, "right", share, 0).failed;
  }
  if (options.call != "right") {
    const double seconds = left();
    double tune = options.tune_seconds;
    if (tune < 0) tune = options.call == "six" ? seconds * 0.25 : std::min(100.0, seconds * 0.42);
    failed += call(options, kit, machine, "fast", seconds, tune).failed;
  }
  std::printf("results are in %s\n", options.output.c_str());
  return failed == 0 ? kGood : kWrong;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_check: %s\n", error.what());
    return kUsageError;
  }
}
