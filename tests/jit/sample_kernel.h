#ifndef ANNULUS_TESTS_JIT_SAMPLE_KERNEL_H_
#define ANNULUS_TESTS_JIT_SAMPLE_KERNEL_H_

// Kernels for tests of the cache. No compiler makes them, and each contains its key.

#include <cstddef>
#include <string>
#include <utility>

#include "jit/compiled_kernel.h"

namespace annulus::test {

// `compiler` is an identity like NVRTC's.
inline jit::KernelKey sample_key(int number, std::string compiler = "13.0 (sample)") {
  return jit::KernelKey("annulus kernel\nsource\nkernel number " + std::to_string(number) + "\n",
                        std::move(compiler));
}

inline jit::CompiledKernel sample_kernel(int number, std::size_t image_bytes = 300) {
  jit::CompiledKernel kernel;
  kernel.kind = number % 2 == 0 ? jit::ImageKind::kPtx : jit::ImageKind::kCubin;
  kernel.symbol = "_Z6kernel" + std::to_string(number);
  for (std::size_t i = 0; i < image_bytes; ++i) {
    kernel.image.push_back(static_cast<std::byte>((i * 7 + static_cast<unsigned>(number)) & 255u));
  }
  kernel.image.back() = std::byte{0};
  kernel.usage.known = true;
  kernel.usage.registers = 100 + number;
  kernel.usage.notes = {"(C7510) a note", ""};
  return kernel;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_JIT_SAMPLE_KERNEL_H_
