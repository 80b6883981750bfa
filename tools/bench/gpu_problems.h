#ifndef ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_

// The problems by which the library is measured on a GPU, dense and sparse.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/attention.h"

namespace annulus::bench {

struct GpuProblem {
  std::string name;
  Problem problem;
  // Of a sparse one: `kept` blocks in every row of each of `layouts` block layouts of `block` x
  // `block`, for peers that are told the blocks. [layouts, rows, kept].
  std::int64_t block = 0;
  std::int64_t layouts = 0;
  std::int64_t kept = 0;
  std::vector<std::int32_t> indices;

  double density = 1;     // of visible pairs
  double flop = 0;        // useful: 4 D for each visible pair of each head
  double bar_tflops = 0;  // to be reached on an H200; 0: none
  std::string dense;      // name of the dense problem that its time is held against
  double bar_share = 0;   // of dense time x density over its own time
};

// tiny: the same kinds with a few hundred tokens, to try the program where times say nothing.
std::vector<GpuProblem> gpu_problems(bool tiny);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
