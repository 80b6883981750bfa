// Measures the time to the first answer in a new process on a simulated device: with kernels
// compiled ahead and no compiler, with a warm cache, and with compiling. Each measurement runs this
// program again as a separate process.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/kernels.h"
#include "base/fail.h"
#include "harness.h"

extern char** environ;

namespace {

using namespace annulus;

constexpr char kChild[] = "--child";

Problem small_problem() {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 128;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  return problem;
}

struct Times {
  double open_ms = 0;
  double plan_ms = 0;  // time of the first plan
  // Time of that plan, memory for its tensors, the run, and the copy of O to the host.
  double answer_ms = 0;
  // Time of a plan whose kernel is on disk and was not used before in this process.
  double again_ms = 0;
};

// Runs in the child process. `way` names the source of the kernels.
Times measure(const std::string& way, const std::string& folder) {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.tuned_path = "";
  options.kernels_path = way == "ahead" ? folder : "";
  options.cache_dir = way == "cache" ? folder : "";
  options.compile = way == "ahead" ? Compile::kNever : Compile::kMissing;
  Times times;
  auto timer = [last = bench::wall_seconds()]() mutable {
    const double now = bench::wall_seconds();
    const double millis = 1e3 * (now - last);
    last = now;
    return millis;
  };
  const Problem problem = small_problem();
  const std::size_t bytes =
      static_cast<std::size_t>(problem.heads * problem.seq_q * problem.dim_qk) * 2;
  const Device device = Device::open(options);
  times.open_ms = timer();
  const Plan plan = device.plan(problem);
  times.plan_ms = timer();
  DeviceMemory memory[4];
  const std::vector<std::uint16_t> zeros(bytes / 2);
  for (DeviceMemory& each : memory) {
    each = device.allocate(bytes);
    device.copy_to_device(each.data(), zeros.data(), bytes);
  }
  Operands operands;
  operands.q = memory[0].data();
  operands.k = memory[1].data();
  operands.v = memory[2].data();
  operands.o = memory[3].data();
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
      Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  plan.run(nullptr, operands);
  std::vector<std::uint16_t> answer(bytes / 2);
  device.copy_to_host(answer.data(), operands.o, bytes);
  times.answer_ms = times.plan_ms + timer();
  Problem other = problem;
  other.pattern = dense();
  device.plan(other);
  times.again_ms = timer();
  if (way != "compile" && device.metrics().compiles != 0) {
    base::fail(ErrorCode::kInternal, "a kernel was compiled");
  }
  return times;
}

Times in_a_process(const std::string& way, const std::string& folder) {
  const std::string file = folder + "/times";
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string child = kChild;
  std::string words[] = {program, child, way, folder, file};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  pid_t process = 0;
  int status = 0;
  if (posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ) != 0 ||
      waitpid(process, &status, 0) != process || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    base::fail(ErrorCode::kInternal, "the process that was to be measured failed");
  }
  Times times;
  std::ifstream(file) >> times.open_ms >> times.plan_ms >> times.answer_ms >> times.again_ms;
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], kChild) == 0) {
    try {
      const Times times = measure(argv[2], argv[3]);
      std::ofstream(argv[4]) << times.open_ms << ' ' << times.plan_ms << ' ' << times.answer_ms
                             << ' ' << times.again_ms;
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  }
  bench::Bench bench("ahead_bench", argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "annulus-bench-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  Problem other = small_problem();
  other.pattern = dense();
  WarmOptions options;
  options.folder = folder;
  options.devices = {"sim:sm_80"};
  warm({.shapes = {{small_problem()}, {other}}, .batches = {}}, options);
  struct Way {
    const char* name;
    const char* text;
    double bar;  // the target for the first answer
  };
  for (const Way& way : {Way{"ahead", "compiled ahead, no compiler", 100},
                         Way{"cache", "from the cache", 0}, Way{"compile", "compiling", 0}}) {
    const std::string name = way.name;
    const auto figure = [&](const char* what, double bar, double Times::*member) {
      bench.add({fmt::format("{}: {}", way.text, what), "ms", bar, true},
                [=] { return in_a_process(name, folder).*member; });
    };
    figure("opening the device", 0, &Times::open_ms);
    figure("first answer, the device being open", way.bar, &Times::answer_ms);
    figure("first plan", 0, &Times::plan_ms);
    figure("another plan", 0, &Times::again_ms);
  }
  const int code = bench.run();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
