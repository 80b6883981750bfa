#ifndef ANNULUS_ATTENTION_PROBLEM_DIMS_H_
#define ANNULUS_ATTENTION_PROBLEM_DIMS_H_

// The head dims that the shipped kernels have.

#include <cstdint>
#include <span>
#include <string>

namespace annulus::attention {

struct Dims {
  std::int64_t qk = 0;
  std::int64_t v = 0;
};

std::span<const Dims> supported_dims();
std::string supported_dims_text();  // "32, 64, ..., 192/128, 256"

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PROBLEM_DIMS_H_
