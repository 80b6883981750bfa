#ifndef ANNULUS_TOOLS_BENCH_GPU_WORKER_H_
#define ANNULUS_TOOLS_BENCH_GPU_WORKER_H_

// The library's side of gpu_bench, in a process of its own.

#include <string>
#include <vector>

#include "gpu_cases.h"

namespace annulus::bench {

// Answers the questions of gpu_process.h on standard input until it ends. An error of the library
// is an answer; throws what Device::open throws.
void serve_gpu_cases(const std::string& device, bool tiny);

// Plans each case, so that its kernels are where the device keeps compiled ones, and prints a line
// for each: {"name", "config", "compile_ms"} or {"name", "error"}. Allocates no operands and runs
// nothing. Returns whether all could be planned; throws what Device::open throws.
bool plan_gpu_cases(const std::string& device, const std::vector<GpuCase>& cases);

// Compiles the kernels of the cases for these GPUs (WarmOptions::devices) into a folder, without
// the one that appends, which no shape states: plan_gpu_cases() leaves it where a simulated device
// keeps kernels. Throws as annulus::warm, and Error{kCompile} if a kernel cannot be compiled.
void compile_gpu_cases(const std::string& folder, const std::vector<std::string>& gpus,
                       const std::vector<GpuCase>& cases);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_WORKER_H_
