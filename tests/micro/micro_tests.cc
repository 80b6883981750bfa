// The first kernels that a GPU of sm_90a should run. Each tests one property on which the kernels
// of the wgmma family rely, and prints the consequence if the GPU behaves otherwise.
//
//   micro_tests --list
//   micro_tests [--device cuda:0] [--case NAME]
//   micro_tests --compile-into DIR [--arch sm_90a] [--case NAME]
//
// The last form runs no kernel. It compiles the kernels of the cases into DIR. ANNULUS_KERNELS=DIR
// lets a machine without NVRTC load them from there. --arch sm_90a makes cubins. Without --arch it
// makes PTX for the simulated device of --device.
//
// The second form writes one line of JSON for each case. A kernel that hangs can be stopped only
// with its process. So on a GPU each case needs a separate process and a time limit
// (tools/gpu_check does that). Exits 0 if all cases passed or were skipped, 1 if one failed, and 2
// on wrong usage.

#include <cstdio>
#include <exception>
#include <string>

#include "micro/bench.h"

namespace {

using namespace annulus;
using micro::Json;

bool run_case(const micro::Bench& bench, const micro::MicroCase& one) {
  Json line = {{"case", one.name}, {"outcome", "pass"}};
  try {
    const micro::Result result = one.run(bench);
    if (!result.passed) line["outcome"] = "fail";
    line["numbers"] = result.numbers;
  } catch (const std::exception& error) {
    line["outcome"] = "fail";
    line["error"] = error.what();
  }
  const bool passed = line["outcome"] == "pass";
  if (!passed) line["tells"] = one.tells;
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return passed;
}

void print_all(const char* outcome, const std::string& only, const std::string& why) {
  for (const micro::MicroCase& one : micro::all_cases()) {
    if (!only.empty() && only != one.name) continue;
    const Json line = {{"case", one.name}, {"outcome", outcome}, {"error", why}};
    std::printf("%s\n", line.dump().c_str());
  }
}

struct Options {
  std::string device = "sim:sm_90a", only, folder, arch;
};

int compile(const Options& options) {
  bench::AheadKernels ahead(options.arch.empty() ? options.device : options.arch);
  const micro::Bench bench("sim:sm_90a", &ahead);
  for (const micro::MicroCase& one : micro::all_cases()) {
    if (options.only.empty() || options.only == one.name) one.run(bench);
  }
  return ahead.compile_into(options.folder) ? 0 : 1;
}

int run(const std::string& device, const std::string& only) {
  try {
    const micro::Bench bench(device);
    const std::string architecture = bench.device().info().architecture;
    if (architecture != "sm_90a") {
      print_all("skipped", only,
                "kernels of this kind are for sm_90a, and this is " + architecture);
      return 0;
    }
    bool passed = true;
    for (const micro::MicroCase& one : micro::all_cases()) {
      if (only.empty() || only == one.name) passed = run_case(bench, one) && passed;
    }
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    print_all("fail", only, error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool known = true;
  for (int i = 1; i < argc && known; ++i) {
    const std::string name = argv[i];
    if (name == "--list") {
      for (const micro::MicroCase& one : micro::all_cases()) std::printf("%s\n", one.name);
      return 0;
    }
    std::string* value = name == "--device"         ? &options.device
                         : name == "--case"         ? &options.only
                         : name == "--compile-into" ? &options.folder
                         : name == "--arch"         ? &options.arch
                                                    : nullptr;
    known = value != nullptr && i + 1 < argc;
    if (known) *value = argv[++i];
  }
  bool exists = options.only.empty();
  for (const micro::MicroCase& one : micro::all_cases())
    exists = exists || options.only == one.name;
  if (!known || !exists || (!options.arch.empty() && options.folder.empty())) {
    std::fprintf(stderr,
                 "usage: %s [--list] [--device NAME] [--case NAME] [--compile-into DIR [--arch "
                 "sm_90a]]\n",
                 argv[0]);
    return 2;
  }
  if (options.folder.empty()) return run(options.device, options.only);
  try {
    return compile(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "micro_tests: %s\n", error.what());
    return 1;
  }
}
