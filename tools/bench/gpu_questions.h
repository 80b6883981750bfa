#ifndef ANNULUS_BENCH_GPU_QUESTIONS_H_
#define ANNULUS_BENCH_GPU_QUESTIONS_H_

// Questions about the kernels that only a GPU can answer, and that should be answered before more
// is built on the kernels. Each question is one problem with several kernels. Most of these kernels
// are variants of kernels that ship (templates/ptx/variants.cuh).

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::bench {

struct QuestionVariant {
  std::string config;                // a KernelConfig, in the form that annulus explain prints
  std::vector<std::string> defines;  // empty: the kernel that ships
  // True: works are drawn from a counter; false: works are counted off.
  bool draws = false;
};

struct GpuQuestion {
  std::string name;
  std::string asks;
  std::string problem_text;
  Problem problem;
  double flop = 0;  // floating-point operations of the visible pairs
  // The other variants are compared with the first variant. Variants with the same number of keys
  // per step add in the same order, so they must give the same bits.
  std::vector<QuestionVariant> variants;
};

// tiny: the same questions with a few hundred tokens.
std::vector<GpuQuestion> gpu_questions(bool tiny);

// The question about the rate of L2 under tensor-map copies. It uses a separate kernel.
inline constexpr const char* kL2Question = "l2_copies";

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_QUESTIONS_H_
