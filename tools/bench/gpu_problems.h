#ifndef ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_

// The dense and sparse problems that are measured on a GPU.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::bench {

struct GpuProblem {
  std::string name;
  Problem problem;
  // For a sparse problem: every row of each of `layouts` block layouts has `kept` blocks of `block`
  // x `block`. Peers that take lists of blocks use `indices`, [layouts, rows, kept].
  std::int64_t block = 0;
  std::int64_t layouts = 0;
  std::int64_t kept = 0;
  std::vector<std::int32_t> indices;

  double density = 1;     // share of visible pairs
  double flop = 0;        // useful work: 4 D for each visible pair of each head
  double bar_tflops = 0;  // the target on an H200; 0: none
  std::string dense;      // name of the dense problem with which its time is compared
  double bar_share = 0;   // the target for dense time x density divided by its own time
};

// The useful work of a problem with this share of visible pairs: 2 (Dqk + Dv) for each visible
// pair.
double flop_of(const Problem& problem, double density);

// A problem with `kept` random blocks in each row, in ascending order.
GpuProblem sparse_problem(std::string name, Problem problem, std::int64_t block,
                          std::int64_t layouts, std::int64_t kept, double bar);

// tiny: problems of the same kinds with a few hundred tokens, to test the program when times do not
// matter.
std::vector<GpuProblem> gpu_problems(bool tiny);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
