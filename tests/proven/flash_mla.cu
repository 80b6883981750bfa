// FlashMLA's dense decode kernel for sm_90a with its scheduler's and its combining kernel: 576/512
// dimensions, one head of K and V, pages of 64 tokens, sequences cut into parts.
//
// VARIANT 0: lengths that fill their pages; 1: ones that do not, where the kernel overwrites the
// rows of V behind the end with zeros.
#include <cutlass/fast_math.h>

#include "csrc/params.h"
#include "csrc/sm90/decode/dense/splitkv_mla.cuh"
#include "csrc/smxx/decode/combine/combine.cu"
#include "csrc/smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.cu"
#include "support.h"

int main() {
  proven::use_device(9);
  using Element = cutlass::bfloat16_t;
  constexpr int kBatch = 2, kHeads = 64, kDim = 576, kDimV = 512, kPage = 64, kPages = 8;
  constexpr int kParts = 3;  // CTAs that share the work: as if the GPU had 3 multiprocessors
  const int lengths[kBatch] = {VARIANT == 0 ? 448 : 401, VARIANT == 0 ? 128 : 70};
  const float scale = 1 / std::sqrt(float(kDim));
  proven::Array<Element> q(kBatch * kHeads * kDim), o(kBatch * kHeads * kDimV);
  proven::Array<Element> k(size_t(kBatch) * kPages * kPage * kDim);
  proven::Array<float> lse(kBatch * kHeads), lse_parts((kBatch + kParts) * kHeads);
  proven::Array<float> o_parts(size_t(kBatch + kParts) * kHeads * kDimV);
  proven::Array<int> table(kBatch * kPages), seqlens(kBatch), splits(kBatch + 1);
  proven::Array<DecodingSchedMeta> schedule(kParts);
  q.normal(1), k.normal(2);
  for (int i = 0; i < kBatch * kPages; ++i) table.host[i] = i * 5 % (kBatch * kPages);
  for (int b = 0; b < kBatch; ++b) seqlens.host[b] = lengths[b];
  table.upload(), seqlens.upload();

  GetDecodeSchedMetaParams meta{
      kBatch,        1,      64,     5, -1, -1, nullptr, nullptr, seqlens.device, schedule.device,
      splits.device, kParts, nullptr};
  smxx::decode::run_get_decoding_sched_meta_kernel(meta);

  DenseAttnDecodeParams params{};
  params.b = kBatch, params.s_q = 1, params.q_seq_per_hk = params.h_q = kHeads, params.h_k = 1;
  params.q_head_per_hk = kHeads, params.d = kDim, params.d_v = kDimV;
  params.num_blocks = kBatch * kPages, params.is_causal = false;
  params.scale_softmax = scale, params.scale_softmax_log2 = float(scale * M_LOG2E);
  params.q_ptr = q.device, params.k_ptr = k.device, params.o_ptr = o.device;
  params.softmax_lse_ptr = lse.device;
  params.q_batch_stride = kHeads * kDim, params.q_row_stride = kDim;
  params.q_head_stride = kHeads * kDim;
  params.k_batch_stride = kPage * kDim, params.k_row_stride = params.k_head_stride = kDim;
  params.o_batch_stride = params.o_head_stride = kHeads * kDimV, params.o_row_stride = kDimV;
  params.block_table = table.device, params.block_table_batch_stride = kPages;
  params.page_block_size = kPage, params.seqlens_k_ptr = seqlens.device;
  params.tile_scheduler_metadata_ptr = schedule.device, params.num_sm_parts = kParts;
  params.num_splits_ptr = splits.device, params.total_num_splits = kBatch + kParts;
  params.softmax_lseaccum_ptr = lse_parts.device, params.oaccum_ptr = o_parts.device;
  sm90::run_flash_splitkv_mla_kernel<Element>(params);

  CombineParams combine{kBatch,          1,
                        kHeads,          kDimV,
                        lse.device,      o.device,
                        kHeads,          kHeads,
                        kHeads * kDimV,  kHeads * kDimV,
                        kDimV,           lse_parts.device,
                        o_parts.device,  kHeads,
                        kHeads,          kHeads * kDimV,
                        kHeads * kDimV,  kDimV,
                        schedule.device, splits.device,
                        kParts,          nullptr,
                        nullptr};
  smxx::decode::run_flash_mla_combine_kernel<Element>(combine);
  proven::finish_launch("FlashMLA");

  o.download(), lse.download();
  proven::Answer answer;
  std::vector<double> row;
  for (int b = 0; b < kBatch; ++b) {
    auto key = [&](int j) {
      const int page = table.host[b * kPages + j / kPage];
      return &k.host[(size_t(page) * kPage + j % kPage) * kDim];
    };
    for (int h = 0; h < kHeads; ++h) {
      proven::attention_row(&q.host[(b * kHeads + h) * kDim], kDim, kDimV, lengths[b], scale, key,
                            key, row);
      for (int d = 0; d < kDimV; ++d)
        answer.add(float(o.host[(b * kHeads + h) * kDimV + d]), row[d]);
    }
  }
  return answer.finish(proven::kBoundBf16);
}
