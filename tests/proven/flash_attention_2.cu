// FlashAttention-2's forward kernel for sm_80: cp.async, ldmatrix, mma.sync.
//
// VARIANT 0: bf16, head dim 128, causal, grouped heads; 1: bf16, head dim 64, lengths that are not
// multiples of a tile; 2: the same in f16.
#include <cutlass/numeric_types.h>

#include "attention.h"
#include "flash_fwd_launch_template.h"

using namespace FLASH_NAMESPACE;

using Element = std::conditional_t<VARIANT == 2, cutlass::half_t, cutlass::bfloat16_t>;
constexpr int kDim = VARIANT == 0 ? 128 : 64;
constexpr bool kCausal = VARIANT == 0;

int main() {
  proven::use_device(8);
  const proven::Attention p = kCausal ? proven::Attention{1, 4, 2, 256, 384, kDim, true}
                                      : proven::Attention{2, 2, 2, 150, 200, kDim, false};
  const size_t query_count = size_t(p.batch) * p.queries * p.heads * kDim;
  const size_t key_count = size_t(p.batch) * p.keys * p.kv_heads * kDim;
  proven::Array<Element> q(query_count), k(key_count), v(key_count), o(query_count);
  proven::Array<float> lse(size_t(p.batch) * p.heads * p.queries);
  q.normal(1), k.normal(2), v.normal(3);

  Flash_fwd_params params{};
  params.q_ptr = q.device, params.k_ptr = k.device, params.v_ptr = v.device;
  params.o_ptr = o.device, params.softmax_lse_ptr = lse.device;
  params.q_row_stride = params.o_row_stride = p.heads * kDim;
  params.k_row_stride = params.v_row_stride = p.kv_heads * kDim;
  params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = kDim;
  params.q_batch_stride = params.o_batch_stride = int64_t(p.queries) * p.heads * kDim;
  params.k_batch_stride = params.v_batch_stride = int64_t(p.keys) * p.kv_heads * kDim;
  params.b = p.batch, params.h = p.heads, params.h_k = p.kv_heads;
  params.h_h_k_ratio = p.heads / p.kv_heads;
  params.seqlen_q = p.queries, params.seqlen_k = p.keys;
  params.seqlen_q_rounded = (p.queries + 127) / 128 * 128;
  params.seqlen_k_rounded = (p.keys + 127) / 128 * 128;
  params.d = params.d_rounded = kDim;
  params.scale_softmax = float(p.scale());
  params.scale_softmax_log2 = float(p.scale() * M_LOG2E);
  params.p_dropout = 1, params.rp_dropout = 1,
  params.scale_softmax_rp_dropout = params.scale_softmax;
  params.p_dropout_in_uint8_t = 255;
  params.window_size_left = -1, params.window_size_right = kCausal ? 0 : -1;
  params.is_bf16 = VARIANT != 2, params.is_causal = kCausal;
  params.num_splits = 1;
  params.is_seqlens_k_cumulative = true;

  constexpr int kBlockK = kDim == 128 ? 64 : 128;  // the choice of its host code for an A100
  using Traits = Flash_fwd_kernel_traits<kDim, 128, kBlockK, 4, false, false, Element>;
  run_flash_fwd<Traits, false, kCausal>(params, nullptr);
  proven::finish_launch("flash_fwd_kernel");
  o.download(), lse.download();
  return proven::compare(p, q.host, k.host, v.host, o.host, &lse.host,
                         VARIANT == 2 ? proven::kBoundF16 : proven::kBoundBf16);
}
