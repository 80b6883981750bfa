#ifndef ANNULUS_TOOLS_BENCH_GPU_WORKER_H_
#define ANNULUS_TOOLS_BENCH_GPU_WORKER_H_

// The part of gpu_bench that measures the library, in a separate process.

#include <string>
#include <vector>

#include "gpu_cases.h"

namespace annulus::bench {

// Answers the questions of gpu_process.h until standard input ends. An error of the library becomes
// an answer. Throws what Device::open throws.
void serve_gpu_cases(const std::string& device, bool tiny);

// Plans each case, so that the device's folder of compiled kernels has its kernels. Prints a line
// for each: {"name", "config", "compile_ms"} or {"name", "error"}. It allocates no operands and
// runs nothing. Returns whether all cases could be planned. Throws what Device::open throws.
bool plan_gpu_cases(const std::string& device, const std::vector<GpuCase>& cases);

// Compiles the kernels of the cases for these GPUs (WarmOptions::devices) into a folder. The kernel
// that appends is left out, because no shape requests it; plan_gpu_cases() puts it where a
// simulated device keeps its kernels. Throws what annulus::warm throws, and Error{kCompile} if a
// kernel cannot be compiled.
void compile_gpu_cases(const std::string& folder, const std::vector<std::string>& gpus,
                       const std::vector<GpuCase>& cases);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_WORKER_H_
