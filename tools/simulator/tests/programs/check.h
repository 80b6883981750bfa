#ifndef PROGRAMS_CHECK_H_
#define PROGRAMS_CHECK_H_

// Functions that these programs share. A failed call of CUDA ends the program and prints its name.
// A wrong result does too.

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

// Pseudorandom numbers that are the same on every machine.
inline unsigned next_number(unsigned& state) { return state = state * 1664525u + 1013904223u; }
inline float next_float(unsigned& state) {
  return static_cast<float>(next_number(state) >> 8) / 16777216.0f;
}

inline bool near(double one, double other, double tolerance) {
  return std::fabs(one - other) <= tolerance * (1 + std::fabs(other));
}

#endif  // PROGRAMS_CHECK_H_
