#ifndef ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_

// A process that measures a program on the device on request. So the runs of several programs can
// be interleaved, and a program that hangs can be killed. The process of the library is `gpu_bench
// --serve`, and tools/gpu_peers.py is the process for PyTorch. The process reads questions from
// standard input and writes answers to standard output. Each question and each answer is one line
// with a JSON object. The process gets one question at a time, and ends when its input ends.
//
//   the greeting:  {"version": "torch 2.11, cuDNN 9.19"}
//
// The greeting may have {"gemm": true}, which means that the process can measure a matrix product.
// It may have {"late": true}, which means that the first call of a problem takes so long that the
// peer is measured last and for few problems. The greeting of the library also has {"device",
// "architecture", "simulated", "multiprocessors", "driver", "nvrtc"}.
//
//   {"ask": "load", "problem": {...}, "indices": "FILE"}
//       Drops the previous problem and prepares this one. describe() of gpu_cases.h has the fields.
//       FILE holds the blocks as int32 [layouts, rows, kept_of_a_row]; it is empty if there are
//       none. The answer is {"first_ms": 812.5, "ms": 1.6}: the first run with all compilation, and
//       a later run. The answer of the library also has {"facts": {...}} for the result line.
//   {"ask": "measure", "cold": false, "runs": 3}
//       Runs the loaded problem, with L2 as the previous run left it, or with L2 full of other
//       data. The answer is {"ms": [1.5, 1.4, 1.4]}. The answer of the library also has {"state":
//       {"sm_mhz", "memory_mhz", "watts", "celsius"}}, read while the device worked.
//   {"ask": "gemm"}
//       The answer is {"tflops": 780.1, "by": "torch 2.11 8192^3 bf16, random data"}.
//   {"ask": "copy"}, {"ask": "state"}
//       Only for the library: the line of the ceiling, and {"state": {...}} or {"state": null}.
//
// Instead of any answer the process may write {"error": "has no block-sparse kernel"}, and still
// gets further questions.

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace annulus::bench {

class GpuProcess {
 public:
  // Starts a program, given by its path and its arguments. The program ends no later than this
  // process, however either of them ends. Throws Error{kFile} if no process can be made.
  explicit GpuProcess(const std::vector<std::string>& command);
  // Kills the program and all processes of its process group.
  ~GpuProcess();
  GpuProcess(const GpuProcess&) = delete;
  GpuProcess& operator=(const GpuProcess&) = delete;

  void ask(const nlohmann::json& question);

  // The next line of the process. If it has neither an object nor a reason, no line came within
  // `seconds`. If it has a reason, no further line can be understood, because the process has ended
  // or writes something other than JSON objects.
  struct Line {
    std::optional<nlohmann::json> object;
    std::string broken;
  };
  Line next_line(double seconds);

 private:
  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string read_;  // bytes that were read and are not a whole line yet
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PROCESS_H_
