// ThunderKittens' GEMM for sm_90a by its load-compute-finish template, bf16. PROGRAM is the
// library's file, whose main is put aside.
#define main library_main
#include PROGRAM
#undef main

#include "attention.h"

// The file sets the rows of a problem of its own; these are as small as its tiles allow.
static int run_gemm() {
  using Template = matmul_template<2, 4, 8>;
  using Globals = Template::layout::globals;
  using Matrix = Template::layout::global_layout;
  constexpr size_t kM = 256, kN = 512, kK = 384;
  proven::Array<bf16> a(kM * kK), b(kK * kN), c(kM * kN);
  a.normal(1), b.normal(2);
  auto matrix = [](bf16* data, size_t rows, size_t columns) {
    return Matrix{data, nullptr, nullptr, rows, columns};
  };
  Globals globals{matrix(a.device, kM, kK), matrix(b.device, kK, kN), matrix(c.device, kM, kN)};
  const int shared = MAX_SHARED_MEMORY - 1024;
  auto* kernel = &prototype::lcf::kernel<Template>;
  proven::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                "cudaFuncSetAttribute");
  kernel<<<3, prototype::detail::NUM_THREADS_v<Template>, shared>>>(globals);
  proven::finish_launch("matmul_template");
  c.download();
  proven::Answer answer;
  for (size_t i = 0; i < kM; ++i)
    for (size_t j = 0; j < kN; ++j) {
      double sum = 0;
      for (size_t l = 0; l < kK; ++l)
        sum += double(float(a.host[i * kK + l])) * float(b.host[l * kN + j]);
      answer.add(float(c.host[i * kN + j]), sum);
    }
  return answer.finish(proven::kBoundBf16);
}

int main() {
  proven::use_device(9);
  return run_gemm();
}
