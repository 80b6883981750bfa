// FlashInfer's attention with a latent cache, 512 and 64 dimensions, in pages, planned by its own
// host code. Keys are cut into parts. The CTAs of a cooperative grid synchronise before they merge
// the parts.
//
// VARIANT 0: for sm_80, bf16: cp.async, mma.sync; 1: for sm_90a, f16: cp.async, wgmma, warpgroups
// that hand over through named barriers and mbarriers.
#include <numeric>

#include <flashinfer/attention/mla_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#if VARIANT == 0
#include <flashinfer/attention/mla.cuh>
#else
#include <flashinfer/attention/mla_hopper.cuh>
#endif

#include "support.h"

using namespace flashinfer;

#define CHECK(call) proven::check(static_cast<int>(call), #call)

int main() {
  proven::use_device(VARIANT == 0 ? 8 : 9);
  using Element = std::conditional_t<VARIANT == 0, nv_bfloat16, half>;
  constexpr int kBatch = 2, kHeads = 16, kDim = 512, kDimKpe = 64, kPage = 32;
  const int queries[kBatch] = {3, 1}, keys[kBatch] = {517, 130};
  std::vector<int> query_starts{0}, page_starts{0}, lengths(keys, keys + kBatch);
  for (int b = 0; b < kBatch; ++b) {
    query_starts.push_back(query_starts.back() + queries[b]);
    page_starts.push_back(page_starts.back() + (keys[b] + kPage - 1) / kPage);
  }
  const int rows = query_starts.back() * kHeads, pages = page_starts.back();
  proven::Array<Element> q(size_t(rows) * kDim), q_pe(size_t(rows) * kDimKpe), o(q.host.size());
  proven::Array<Element> ckv(size_t(pages) * kPage * kDim), kpe(size_t(pages) * kPage * kDimKpe);
  proven::Array<float> lse(rows);
  proven::Array<int> table(pages);
  proven::Array<char> floats(size_t(32) << 20), ints(size_t(1) << 20);
  q.normal(1), q_pe.normal(2), ckv.normal(3), kpe.normal(4);
  for (int i = 0; i < pages; ++i) table.host[i] = i * 5 % pages;
  table.upload();
  void* page_locked = nullptr;
  CHECK(cudaMallocHost(&page_locked, ints.bytes()));

  MLAPlanInfo info;
  size_t staged = 0;
  CHECK(MLAPlan(floats.device, floats.bytes(), ints.device, page_locked, ints.bytes(), info, staged,
                query_starts.data(), page_starts.data(), lengths.data(), kBatch, kHeads, kDim, true,
                nullptr));
  CHECK(cudaMemcpy(ints.device, page_locked, staged, cudaMemcpyHostToDevice));
  auto at = [&](int64_t offset) { return GetPtrFromBaseOffset<int>(ints.device, offset); };
  MLAParams<Element, Element, Element, int> params{};
  params.q_nope = q.device, params.q_pe = q_pe.device;
  params.ckv = ckv.device, params.kpe = kpe.device;
  params.q_indptr = at(info.q_indptr_offset), params.kv_indptr = at(info.kv_indptr_offset);
  params.partial_indptr = at(info.partial_indptr_offset);
  params.kv_indices = table.device;
  params.q_len = at(info.q_len_offset), params.kv_len = at(info.kv_len_offset);
  params.q_start = at(info.q_start_offset), params.kv_start = at(info.kv_start_offset);
  params.kv_end = at(info.kv_end_offset), params.work_indptr = at(info.work_indptr_offset);
  params.merge_packed_offset_start = at(info.merge_packed_offset_start_offset);
  params.merge_packed_offset_end = at(info.merge_packed_offset_end_offset);
  params.merge_partial_packed_offset_start = at(info.merge_partial_packed_offset_start_offset);
  params.merge_partial_packed_offset_end = at(info.merge_partial_packed_offset_end_offset);
  params.merge_partial_stride = at(info.merge_partial_stride_offset);
  params.final_o = o.device, params.final_lse = lse.device;
  params.partial_o = GetPtrFromBaseOffset<Element>(floats.device, info.partial_o_offset);
  params.partial_lse = GetPtrFromBaseOffset<float>(floats.device, info.partial_lse_offset);
  params.num_heads = uint_fastdiv(kHeads), params.block_size = uint_fastdiv(kPage);
  params.q_nope_stride_n = params.o_stride_n = kHeads * kDim;
  params.q_nope_stride_h = params.o_stride_h = kDim;
  params.q_pe_stride_n = kHeads * kDimKpe, params.q_pe_stride_h = kDimKpe;
  params.ckv_stride_page = kPage * kDim, params.ckv_stride_n = kDim;
  params.kpe_stride_page = kPage * kDimKpe, params.kpe_stride_n = kDimKpe;
  params.sm_scale = 1 / std::sqrt(float(kDim + kDimKpe));
#if VARIANT == 0
  CHECK((mla::BatchMLAPagedAttention<MaskMode::kCausal, kDim, kDimKpe>(params, info.num_blks_x,
                                                                       info.num_blks_y, nullptr)));
#else
  CHECK((mla::BatchMLAPageAttentionHopper<MaskMode::kCausal, kDim, kDimKpe>(
      params, info.num_blks_x, info.num_blks_y, nullptr)));
#endif
  proven::finish_launch("FlashInfer");
  o.download();

  proven::Answer answer;
  std::vector<double> row;
  for (int b = 0; b < kBatch; ++b) {
    auto place = [&](int j) { return table.host[page_starts[b] + j / kPage] * kPage + j % kPage; };
    std::vector<std::vector<float>> joined;  // both parts of each key, joined
    for (int j = 0; j < keys[b]; ++j) {
      std::vector<float> key(&ckv.host[size_t(place(j)) * kDim],
                             &ckv.host[size_t(place(j)) * kDim] + kDim);
      for (int d = 0; d < kDimKpe; ++d) key.push_back(kpe.host[size_t(place(j)) * kDimKpe + d]);
      joined.push_back(key);
    }
    for (int i = 0; i < queries[b]; ++i)
      for (int h = 0; h < kHeads; ++h) {
        const size_t at_row = size_t(query_starts[b] + i) * kHeads + h;
        std::vector<float> query(&q.host[at_row * kDim], &q.host[at_row * kDim] + kDim);
        for (int d = 0; d < kDimKpe; ++d) query.push_back(q_pe.host[at_row * kDimKpe + d]);
        auto key = [&](int j) { return joined[j].data(); };
        proven::attention_row(query, kDim + kDimKpe, kDim, keys[b] - queries[b] + i + 1,
                              params.sm_scale, key, key, row);
        for (int d = 0; d < kDim; ++d) answer.add(float(o.host[at_row * kDim + d]), row[d]);
      }
  }
  return answer.finish(VARIANT == 0 ? proven::kBoundBf16 : proven::kBoundF16);
}
