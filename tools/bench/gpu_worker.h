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
// nothing. Throws what Device::open throws.
void plan_gpu_cases(const std::string& device, const std::vector<GpuCase>& cases);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_WORKER_H_
