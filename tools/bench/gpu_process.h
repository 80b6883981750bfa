#ifndef ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_

// A process that measures a program on the device when it is asked to, so that the runs of several
// programs can be interleaved, and a program that hangs can be killed. The library's own is
// `gpu_bench --serve`; tools/gpu_peers.py is one for PyTorch. The process reads questions on its
// standard input and answers on its standard output. Each line either way is one JSON object. It
// is asked one question at a time, and ends when its input ends.
//
//   it begins with  {"version": "torch 2.11, cuDNN 9.19"}
//
// The greeting may have {"gemm": true}: it can measure a matrix product; {"late": true}: its first
// call of a problem takes so long that it is asked last, and for few problems. The library's also
// says {"device", "architecture", "simulated", "multiprocessors", "driver", "nvrtc"}.
//
//   {"ask": "load", "problem": {...}, "indices": "FILE"}
//       Forgets the problem before, and makes this one ready: describe() of gpu_cases.h has its
//       fields. FILE holds its blocks as int32 [layouts, rows, kept_of_a_row]; empty: it has none.
//       Answers {"first_ms": 812.5, "ms": 1.6}: the first run with all that is compiled for it, and
//       a later one. The library's answer also has {"facts": {...}}, which a result line repeats.
//   {"ask": "measure", "cold": false, "runs": 3}
//       Runs the problem that was loaded last, with L2 as the run before left it, or with L2 full
//       of other data. Answers {"ms": [1.5, 1.4, 1.4]}. The library's answer also has {"state":
//       {"sm_mhz", "memory_mhz", "watts", "celsius"}}, read while the device worked.
//   {"ask": "gemm"}
//       Answers {"tflops": 780.1, "by": "torch 2.11 8192^3 bf16, random data"}.
//   {"ask": "copy"}, {"ask": "state"}
//       The library's alone: the line of the ceiling, and {"state": {...}} or {"state": null}.
//
// Instead of any answer it may say {"error": "has no block-sparse kernel"}, and be asked again.

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace annulus::bench {

class GpuProcess {
 public:
  // Starts a program: its path and its arguments. It ends with this process at the latest, whatever
  // becomes of either. Throws Error{kFile} where no process can be made.
  explicit GpuProcess(const std::vector<std::string>& command);
  // Kills it, and all that it has started and that is still in its process group.
  ~GpuProcess();
  GpuProcess(const GpuProcess&) = delete;
  GpuProcess& operator=(const GpuProcess&) = delete;

  void ask(const nlohmann::json& question);

  // The next line of the process. With neither an object nor a reason: none came within `seconds`.
  // With a reason: none will come that could be understood, because the process has ended or writes
  // something else.
  struct Line {
    std::optional<nlohmann::json> object;
    std::string broken;
  };
  Line next_line(double seconds);

 private:
  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string read_;  // what has come and is not a whole line yet
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_
