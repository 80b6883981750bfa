#ifndef ANNULUS_BENCH_GPU_QUESTIONS_H_
#define ANNULUS_BENCH_GPU_QUESTIONS_H_

// What is to be asked of a GPU about the kernels before anything else is built on them: each
// question is one problem and the kernels that answer it, of which most are variants of what ships
// (templates/ptx/variants.cuh).

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/attention.h"

namespace annulus::bench {

struct QuestionVariant {
  std::string config;                // KernelConfig, as explain prints it
  std::vector<std::string> defines;  // empty: as it ships
};

struct GpuQuestion {
  std::string name;
  std::string asks;
  std::string problem_text;
  Problem problem;
  double flop = 0;  // of visible pairs
  // The first is what the others are held against: those with as many keys to a step add in the
  // same order and have to give the same bits.
  std::vector<QuestionVariant> variants;
};

// tiny: the same questions about a few hundred tokens.
std::vector<GpuQuestion> gpu_questions(bool tiny);

// How fast L2 is under tensor-map copies; asked by a kernel of its own.
inline constexpr const char* kL2Question = "l2_copies";

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_QUESTIONS_H_
