// DeepGEMM's bf16 GEMM for sm_90: D = A B^T, by TMA, wgmma and a persistent grid.
//
// The template arguments are those that its host code would choose, in variants by VARIANT:
// 0 plain, 1 multicast of A, 2 multicast of B, 3 merged stages, 4 operands MN-major with D
// added in fp32 by TMA reductions.
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

#include "support.h"
#include "tensor_map.h"

using namespace deep_gemm;
using cute::UMMA::Major;

constexpr bool kReduce = VARIANT == 4;
using Result = std::conditional_t<kReduce, float, cutlass::bfloat16_t>;
constexpr Major kMajor = kReduce ? Major::MN : Major::K;
constexpr uint32_t kBlockM = VARIANT == 3 ? 64 : 128, kBlockN = VARIANT == 3 ? 64 : 128;
constexpr uint32_t kBlockK = 64, kStages = VARIANT == 3 ? 10 : 4;
constexpr uint32_t kMulticast = VARIANT == 1 || VARIANT == 2 ? 2 : 1;
constexpr uint32_t kMathThreads = VARIANT == 3 ? 128 : 256;
constexpr uint32_t kGrid = 4;
constexpr uint32_t kSwizzleD = kReduce ? 0 : 128;

int main(int argc, char** argv) {
  proven::use_device(9);
  const int m = proven::argument(argc, argv, "--m", 300);
  const int n = proven::argument(argc, argv, "--n", 200);
  const int k = proven::argument(argc, argv, "--k", 264);
  using Element = cutlass::bfloat16_t;
  // MN-major rows must be whole multiples of 16 bytes, hence the padded strides.
  const int lda = kReduce ? (m + 7) / 8 * 8 : k, ldb = kReduce ? (n + 7) / 8 * 8 : k;
  proven::Array<Element> a(size_t(kReduce ? k : m) * lda), b(size_t(kReduce ? k : n) * ldb);
  proven::Array<Result> d(size_t(m) * n);
  a.normal(1), b.normal(2);
  d.normal(3, 4);
  const std::vector<Result> before = d.host;

  auto operand = [&](Element* data, int mn, int stride, int block) {
    return kReduce ? proven::tensor_map_2d(data, mn, k, stride, 64, kBlockK, 128)
                   : proven::tensor_map_2d(data, k, mn, stride, 64, block, 128);
  };
  const CUtensorMap map_a = operand(a.device, m, lda, kBlockM);
  const CUtensorMap map_b = operand(b.device, n, ldb, kBlockN);
  const CUtensorMap map_d =
      proven::tensor_map_2d(d.device, n, m, n, kSwizzleD ? 64 : kBlockN, kBlockM, kSwizzleD);

  auto* kernel = &sm90_bf16_gemm_impl<kMajor, kMajor, 0, 0, 0, 1, kBlockM, kBlockN, kBlockK, 128,
                                      128, kSwizzleD, kStages, 128, kMathThreads, kMulticast,
                                      VARIANT == 1, kGrid, GemmType::Normal, kReduce, Result>;
  const size_t shared = (kBlockM * kBlockN * sizeof(Result) + 1023) / 1024 * 1024 +
                        kStages * (kBlockM + kBlockN) * kBlockK * 2 + kStages * 16;
  proven::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)),
      "cudaFuncSetAttribute");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kMulticast, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kGrid);
  config.blockDim = dim3(128 + kMathThreads);
  config.dynamicSmemBytes = shared;
  config.attrs = &cluster;
  config.numAttrs = 1;
  proven::check(cudaLaunchKernelEx(&config, kernel, static_cast<int*>(nullptr), uint32_t(m),
                                   uint32_t(n), uint32_t(k), map_a, map_b, map_d),
                "launch");
  proven::finish_launch("sm90_bf16_gemm_impl");

  d.download();
  proven::Answer answer;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = kReduce ? double(before[size_t(i) * n + j]) : 0;
      for (int l = 0; l < k; ++l)
        sum +=
            kReduce
                ? double(float(a.host[size_t(l) * lda + i])) * float(b.host[size_t(l) * ldb + j])
                : double(float(a.host[size_t(i) * lda + l])) * float(b.host[size_t(j) * ldb + l]);
      answer.add(float(d.host[size_t(i) * n + j]), sum);
    }
  return answer.finish(kReduce ? 1e-5 : proven::kBoundBf16);
}
