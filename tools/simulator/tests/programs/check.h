#ifndef PROGRAMS_CHECK_H_
#define PROGRAMS_CHECK_H_

// What these programs share: a call of CUDA that fails ends the program with its name, and so does
// an answer that is wrong.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const cudaError_t code = (call);                                                         \
    if (code != cudaSuccess) {                                                               \
      std::printf("%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, cudaGetErrorName(code), \
                  cudaGetErrorString(code));                                                 \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

#define EXPECT(condition)                                                \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::printf("%s:%d: wrong: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

// Numbers that look random and are the same everywhere.
inline unsigned next_number(unsigned& state) { return state = state * 1664525u + 1013904223u; }
inline float next_float(unsigned& state) {
  return static_cast<float>(next_number(state) >> 8) / 16777216.0f;
}

inline bool near(double one, double other, double tolerance) {
  return std::fabs(one - other) <= tolerance * (1 + std::fabs(other));
}

#endif  // PROGRAMS_CHECK_H_
