#ifndef ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
#define ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_

// The problems that are measured on a GPU, dense and sparse.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::bench {

struct GpuProblem {
  std::string name;
  Problem problem;
  // For a sparse problem: `kept` blocks in every row of each of `layouts` block layouts with blocks
  // of `block` x `block`, for peers that take lists of blocks. The indices are [layouts, rows,
  // kept].
  std::int64_t block = 0;
  std::int64_t layouts = 0;
  std::int64_t kept = 0;
  std::vector<std::int32_t> indices;

  double density = 1;     // share of visible pairs
  double flop = 0;        // useful work: 4 D for each visible pair of each head
  double bar_tflops = 0;  // the target on an H200; 0: none
  std::string dense;      // name of the dense problem that its time is compared with
  double bar_share = 0;   // the target for dense time x density over its own time
};

// Useful work of a problem of which this share of pairs is visible: 2 (Dqk + Dv) for each of them.
double flop_of(const Problem& problem, double density);

// A problem with `kept` blocks in each row, drawn at random and ascending.
GpuProblem sparse_problem(std::string name, Problem problem, std::int64_t block,
                          std::int64_t layouts, std::int64_t kept, double bar);

// tiny: the same kinds of problems with a few hundred tokens, to try the program where times mean
// nothing.
std::vector<GpuProblem> gpu_problems(bool tiny);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_PROBLEMS_H_
