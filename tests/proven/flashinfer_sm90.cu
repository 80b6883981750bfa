// FlashInfer's prefill kernels for sm_90a, head dim 128, planned by its own host code: TMA, wgmma,
// warp specialisation.
//
// VARIANT 0: one sequence, f16, causal, grouped heads; 1: sequences of various lengths, bf16, full;
// 2: the same in pages, f16, causal, which cp.async reads; 3: one sequence, e4m3, full.
#include <numeric>
#include <optional>

#include <cutlass/numeric_types.h>
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/quantization/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/attention/scheduler.cuh>

#include "sequences.h"

using namespace flashinfer;

#define CHECK(call) proven::check(static_cast<int>(call), #call)

constexpr int kDim = 128;
constexpr bool kCausal = VARIANT == 0 || VARIANT == 2, kFp8 = VARIANT == 3;
constexpr auto kMask = kCausal ? MaskMode::kCausal : MaskMode::kNone;
using Element =
    std::conditional_t<kFp8, cutlass::float_e4m3_t,
                       std::conditional_t<VARIANT == 1, cutlass::bfloat16_t, cutlass::half_t>>;
using Out = std::conditional_t<VARIANT == 1, cutlass::bfloat16_t, cutlass::half_t>;
using Params = std::conditional_t<
    VARIANT == 1, BatchPrefillRaggedParams<Element, Element, Out, int>,
    std::conditional_t<VARIANT == 2, BatchPrefillPagedParams<Element, Element, Out, int>,
                       SinglePrefillParams<Element, Element, Out>>>;

#if VARIANT == 3
// The parameters that FlashInfer's generator makes for this kernel.
struct Fp8Params : Params {
  struct AdditionalParams {
    float *maybe_scale_q, *maybe_scale_k, *maybe_scale_v;
    float sm_scale, scale_q_scalar, scale_k_scalar, scale_v_scalar;
  } additional_params;
};
#endif

int main() {
  proven::use_device(9);
  proven::Sequences p{{256}, {384}, 4, 2, kDim, kCausal};
  if (VARIANT == 1) p = {{150, 33, 1}, {200, 64, 90}, 4, 2, kDim, false};
  if (VARIANT == 2) p = {{150, 33, 1}, {250, 64, 90}, 4, 2, kDim, true, 16};
  if (VARIANT == 3) p = {{200}, {500}, 2, 2, kDim, false};
  const int q_row = p.heads * kDim, k_row = p.kv_heads * kDim;
  proven::Array<Element> q(size_t(p.query_rows()) * q_row);
  proven::Array<Element> k(size_t(p.key_rows()) * k_row), v(k.host.size());
  proven::Array<Out> o(q.host.size());
  proven::Array<float> lse(size_t(p.query_rows()) * p.heads);
  q.normal(1), k.normal(2), v.normal(3);

#if VARIANT == 3
  Fp8Params params{};
  params.additional_params.scale_q_scalar = params.additional_params.scale_k_scalar = 1;
  params.additional_params.scale_v_scalar = 1;
#else
  Params params{};
#endif
  params.q_ptr = q.device, params.k_ptr = k.device, params.v_ptr = v.device,
  params.o_ptr = o.device;
  params.lse_ptr = lse.device;
  params.q_stride_n = params.o_stride_n = q_row, params.k_stride_n = params.v_stride_n = k_row;
  params.q_stride_h = params.o_stride_h = params.k_stride_h = params.v_stride_h = kDim;
  params.num_qo_heads = p.heads, params.num_kv_heads = p.kv_heads;
  params.group_size = p.heads / p.kv_heads;
  params.window_left = -1, params.causal = kCausal;
  params.additional_params.sm_scale = 1 / std::sqrt(float(kDim));

#if VARIANT == 0
  params.qo_len = p.queries[0], params.kv_len = p.keys[0];
  CHECK((SinglePrefillWithKVCacheDispatched<kDim, kDim, kMask, false, DefaultAttention<false>>(
      params, nullptr)));
#elif VARIANT == 3
  params.qo_len = p.queries[0], params.kv_len = p.keys[0];
  CHECK((SingleFP8PrefillWithKVCacheDispatched<kDim, kMask, false, DefaultFP8Attention>(params,
                                                                                        nullptr)));
#else
  proven::Array<char> floats(size_t(1) << 20), ints(size_t(1) << 20);
  void* page_locked = nullptr;
  CHECK(cudaMallocHost(&page_locked, ints.bytes()));
  std::vector<int> queries = p.query_starts(), lengths = p.keys;
  std::vector<int> keys = p.page ? p.page_starts() : p.key_starts();
  PrefillPlanSM90Info info;
  CHECK(PrefillSM90Plan(floats.device, floats.bytes(), ints.device, page_locked, ints.bytes(), info,
                        queries.data(), keys.data(), lengths.data(), p.query_rows(), p.count(),
                        p.heads, p.kv_heads, kDim, kDim, p.page ? p.page : 1, kCausal, false,
                        sizeof(Out), nullptr));
  auto at = [&](int64_t offset) { return GetPtrFromBaseOffset<int>(ints.device, offset); };
  params.qo_tile_indices = at(info.qo_tile_indices_offset);
  params.qo_indptr = at(info.qo_indptr_offset), params.kv_indptr = at(info.kv_indptr_offset);
  params.qo_lens = at(info.qo_len_offset), params.kv_lens = at(info.kv_len_offset);
  params.head_indices = at(info.head_indices_offset);
  params.work_indptr = at(info.work_indptr_offset);
  params.batch_indices = at(info.batch_indices_offset);
  params.nnz_qo = p.query_rows();
  CHECK(info.same_schedule_for_all_heads);
#if VARIANT == 1
  params.nnz_kv = p.key_rows();
  CHECK((BatchPrefillWithRaggedKVCacheDispatched<kDim, kDim, kMask, false, false,
                                                 DefaultAttention<false>>(params, false, nullptr)));
#else
  proven::Array<int> table(p.table().size());
  table.host = p.table(), table.upload();
  params.kv_indices = table.device;
  params.page_size = p.page;
  params.k_page_stride = params.v_page_stride = p.page * k_row;
  CHECK((BatchPrefillWithPagedKVCacheDispatched<kDim, kDim, kMask, false, false,
                                                DefaultAttention<false>>(params, false, nullptr)));
#endif
#endif
  proven::finish_launch("FlashInfer");
  o.download();
  const double bound = kFp8 ? 0.25 : VARIANT == 1 ? proven::kBoundBf16 : proven::kBoundF16;
  return proven::compare(p, q.host, k.host, v.host, o.host, bound);
}
