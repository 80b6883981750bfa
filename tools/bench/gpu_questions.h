#ifndef ANNULUS_BENCH_GPU_QUESTIONS_H_
#define ANNULUS_BENCH_GPU_QUESTIONS_H_

// Questions to a GPU about the kernels, to be answered before anything else is built on them. Each
// question is one problem and the kernels that answer it, most of which are variants of kernels
// that ship (templates/ptx/variants.cuh).

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::bench {

struct QuestionVariant {
  std::string config;                // KernelConfig, as explain prints it
  std::vector<std::string> defines;  // empty: the kernel as it ships
  bool draws = false;                // works from a counter, else they are counted off
};

struct GpuQuestion {
  std::string name;
  std::string asks;
  std::string problem_text;
  Problem problem;
  double flop = 0;  // of visible pairs
  // The others are compared with the first one: variants with as many keys to a step add in the
  // same order and must give the same bits.
  std::vector<QuestionVariant> variants;
};

// tiny: the same questions about a few hundred tokens.
std::vector<GpuQuestion> gpu_questions(bool tiny);

// The question how fast L2 is under tensor-map copies, which has a kernel of its own.
inline constexpr const char* kL2Question = "l2_copies";

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_QUESTIONS_H_
