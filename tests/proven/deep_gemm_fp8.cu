// DeepGEMM's e4m3 GEMM for sm_90 with scales: one for each row and 128 columns of A, one for each
// 128 x 128 block of B; sums of 128 products are promoted to fp32 by ordinary instructions.
//
// VARIANT 0: plain; 1: clusters of two that share A by multicast.
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

#include "support.h"
#include "tensor_map.h"

using namespace deep_gemm;

constexpr uint32_t kBlockM = 128, kBlockN = 128, kBlockK = 128, kStages = 4, kGrid = 4;
constexpr uint32_t kMulticast = VARIANT == 1 ? 2 : 1;

int main(int argc, char** argv) {
  proven::use_device(9);
  const int m = proven::argument(argc, argv, "--m", 300);
  const int n = proven::argument(argc, argv, "--n", 256);
  const int k = proven::argument(argc, argv, "--k", 512);
  const int scales_k = (k + 127) / 128, aligned_m = (m + 3) / 4 * 4;
  using Element = __nv_fp8_e4m3;
  proven::Array<Element> a(size_t(m) * k), b(size_t(n) * k);
  proven::Array<float> scale_a(size_t(scales_k) * aligned_m);
  proven::Array<float> scale_b(size_t((n + 127) / 128) * scales_k);
  proven::Array<__nv_bfloat16> d(size_t(m) * n);
  a.normal(1), b.normal(2);
  for (auto* scales : {&scale_a, &scale_b}) {
    proven::Random random(scales == &scale_a ? 3 : 4);
    for (float& x : scales->host) x = 1.5f + random.uniform();
    scales->upload();
  }
  const CUtensorMap map_a = proven::tensor_map_2d(a.device, k, m, k, 128, kBlockM, 128);
  const CUtensorMap map_b = proven::tensor_map_2d(b.device, k, n, k, 128, kBlockN, 128);
  const CUtensorMap map_d = proven::tensor_map_2d(d.device, n, m, n, 64, kBlockM, 128);
  const CUtensorMap map_scales =
      proven::tensor_map_2d(scale_a.device, aligned_m, scales_k, aligned_m, kBlockM, 1, 0);

  auto* kernel =
      &sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, 0, 0, 1, kBlockM, kBlockN, kBlockK, 128,
                               128, 128, kStages, 128, 256, kMulticast, VARIANT == 1, kGrid,
                               GemmType::Normal, cutlass::bfloat16_t,
                               epilogue::transform::EpilogueIdentity>;
  const size_t shared = kBlockM * kBlockN * 2 +
                        kStages * ((kBlockM + kBlockN) * kBlockK + kBlockM * 4) +
                        (scales_k * 4 + 7) / 8 * 8 + kStages * 16;
  proven::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)),
      "cudaFuncSetAttribute");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kMulticast, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kGrid);
  config.blockDim = dim3(384);
  config.dynamicSmemBytes = shared;
  config.attrs = &cluster;
  config.numAttrs = 1;
  proven::check(
      cudaLaunchKernelEx(&config, kernel, scale_b.device, static_cast<int*>(nullptr), uint32_t(m),
                         uint32_t(n), uint32_t(k), map_a, map_b, map_d, map_scales),
      "launch");
  proven::finish_launch("sm90_fp8_gemm_1d2d_impl");

  d.download();
  proven::Answer answer;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += double(float(a.host[size_t(i) * k + l])) * float(b.host[size_t(j) * k + l]) *
               scale_a.host[size_t(l / 128) * aligned_m + i] *
               scale_b.host[size_t(j / 128) * scales_k + l / 128];
      answer.add(float(d.host[size_t(i) * n + j]), sum);
    }
  return answer.finish(proven::kBoundBf16);
}
