// FlashAttention-3's forward kernel for sm_90a, head dim 128: TMA, wgmma, warp specialisation.
//
// VARIANT 0: bf16, causal, grouped heads, a persistent grid that takes tiles from a counter;
// 1: bf16, full, clusters of two that share K and V by multicast; 2: bf16, causal, sequences of
// various lengths in pages that TMA reads; 3: the same in pages of 16 tokens that cp.async reads;
// 4: e4m3, full, V transposed by the kernel; 5: f16, causal, sequences of various lengths one
// behind another.
#include "flash_fwd_launch_template.h"
#if VARIANT == 2 || VARIANT == 3 || VARIANT == 5
#include "flash_prepare_scheduler.cu"
#endif

#include "sequences.h"

#define CHECK(call) proven::check(static_cast<int>(call), #call)

constexpr bool kFp8 = VARIANT == 4, kCausal = VARIANT != 1 && VARIANT != 4;
constexpr bool kPaged = VARIANT == 2 || VARIANT == 3, kSmallPages = VARIANT == 3;
constexpr bool kRagged = VARIANT == 5;
constexpr int kDim = 128;
using Out = std::conditional_t<kRagged, cutlass::half_t, cutlass::bfloat16_t>;
using Element = std::conditional_t<kFp8, cutlass::float_e4m3_t, Out>;

// Where the rows of K and V lie: batch after batch, or in pages that a table names.
struct Pages {
  int size, of_sequence;
  std::vector<int> table;
};

static Pages make_pages(const proven::Attention& p) {
  Pages pages{kSmallPages ? 16 : 128, 0, {}};
  pages.of_sequence = (p.keys + pages.size - 1) / pages.size;
  const int count = p.batch * pages.of_sequence;
  // 7 is prime to the count of pages, so that this is a permutation that leaves few in place.
  for (int i = 0; i < count; ++i) pages.table.push_back(count % 7 ? i * 7 % count : count - 1 - i);
  return pages;
}

int main() {
  proven::use_device(9);
  proven::Attention p{2, 4, 2, 256, 384, kDim, kCausal};
  if (VARIANT == 1) p = {1, 2, 2, 512, 528, kDim, false};
  if (VARIANT == 4) p = {1, 2, 2, 200, 500, kDim, false};
  if (kPaged) p = {3, 4, 2, 160, 384, kDim, true};
  const proven::Sequences ragged{{150, 33, 1}, {200, 64, 300}, 4, 2, kDim, true};
  if (kRagged) p = {3, 4, 2, 150, 300, kDim, true};  // the longest
  const Pages pages = make_pages(p);
  const int query_rows = kRagged ? ragged.query_rows() : p.batch * p.queries;
  const int key_rows = kRagged  ? ragged.key_rows()
                       : kPaged ? int(pages.table.size()) * pages.size
                                : p.batch * p.keys;
  proven::Array<Element> q(size_t(query_rows) * p.heads * kDim);
  proven::Array<Element> k(size_t(key_rows) * p.kv_heads * kDim), v(k.host.size());
  proven::Array<Out> o(q.host.size());
  proven::Array<float> lse(size_t(p.batch) * p.heads * p.queries), descale(64);
  proven::Array<int> semaphore(64), table(pages.table.size()), used(p.batch);
  proven::Array<int> query_starts(p.batch + 1), key_starts(p.batch + 1);
  q.normal(1), k.normal(2), v.normal(3);
  semaphore.set(0), descale.set(1);
  table.host = pages.table, table.upload();
  for (int b = 0; b < p.batch; ++b) used.host[b] = p.keys - 90 * b;
  used.upload();

  Flash_fwd_params params{};
  params.q_ptr = q.device, params.k_ptr = k.device, params.v_ptr = v.device;
  params.o_ptr = o.device, params.softmax_lse_ptr = lse.device;
  params.q_row_stride = params.o_row_stride = p.heads * kDim;
  params.k_row_stride = params.v_row_stride = p.kv_heads * kDim;
  params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = kDim;
  params.v_dim_stride = 1;
  params.q_batch_stride = params.o_batch_stride = int64_t(p.queries) * p.heads * kDim;
  params.k_batch_stride = params.v_batch_stride =
      int64_t(kPaged ? pages.size : p.keys) * p.kv_heads * kDim;
  params.b = params.b_k = p.batch, params.h = p.heads, params.h_k = p.kv_heads;
  params.seqlen_q = p.queries;
  params.seqlen_k = kPaged ? pages.of_sequence * pages.size : p.keys;
  params.total_q = query_rows, params.total_k = key_rows;
  params.d = params.d_rounded = params.dv = params.dv_rounded = kDim;
  params.scale_softmax = float(p.scale());
  params.window_size_left = -1, params.window_size_right = kCausal ? 0 : -1;
  params.is_bf16 = !kFp8 && !kRagged, params.is_e4m3 = kFp8, params.is_causal = kCausal;
  params.num_splits = 1;
  params.rp_dropout = 1, params.p_dropout = 1;
  params.arch = 90;
  int device = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&params.num_sm, cudaDevAttrMultiProcessorCount, device));
  params.tile_count_semaphore = semaphore.device + 48;
  if (kFp8) params.q_descale_ptr = params.k_descale_ptr = params.v_descale_ptr = descale.device;
  if (kRagged) {
    query_starts.host = ragged.query_starts(), query_starts.upload();
    key_starts.host = ragged.key_starts(), key_starts.upload();
    params.cu_seqlens_q = query_starts.device, params.cu_seqlens_k = key_starts.device;
  }
  if (kPaged) {
    params.page_table = table.device, params.page_table_batch_stride = pages.of_sequence;
    params.page_size = pages.size, params.num_pages = int(pages.table.size());
    params.pagedkv_tma = !kSmallPages;
    params.seqused_k = used.device;
  }
  if (kPaged || kRagged) {
    params.num_splits_dynamic_ptr = semaphore.device;
    params.num_m_blocks_ptr = semaphore.device + 8;
    params.varlen_batch_idx_ptr = semaphore.device + 16;
    params.num_nheads_in_l2_ptr = semaphore.device + 24;
    params.varlen_sort_batches = params.head_swizzle = true;
    params.prepare_varlen_pdl = true;
  }
  run_flash_fwd<90, kDim, kDim, VARIANT == 1 ? 2 : 1, Element, Out, kCausal, false, false,
                kPaged || kRagged, kSmallPages, false, false, kSmallPages, false, false>(params,
                                                                                         nullptr);
  proven::finish_launch("FlashAttnFwdSm90");
  o.download(), lse.download();
  if (kRagged) return proven::compare(ragged, q.host, k.host, v.host, o.host, proven::kBoundF16);
  if (!kPaged)
    return proven::compare(p, q.host, k.host, v.host, o.host, &lse.host,
                           kFp8 ? 0.25 : proven::kBoundBf16);

  int code = 0;
  const size_t rows = size_t(p.queries) * p.heads * kDim;
  for (int b = 0; b < p.batch; ++b) {  // each sequence by itself, its pages put in order
    const proven::Attention one{1, p.heads, p.kv_heads, p.queries, used.host[b], kDim, true};
    std::vector<Element> keys, values, queries(&q.host[b * rows], &q.host[b * rows] + rows);
    std::vector<Out> out(&o.host[b * rows], &o.host[b * rows] + rows);
    for (int j = 0; j < one.keys; ++j) {
      const int page = pages.table[b * pages.of_sequence + j / pages.size];
      const size_t first = (size_t(page) * pages.size + j % pages.size) * p.kv_heads * kDim;
      keys.insert(keys.end(), &k.host[first], &k.host[first] + p.kv_heads * kDim);
      values.insert(values.end(), &v.host[first], &v.host[first] + p.kv_heads * kDim);
    }
    code |= proven::compare(one, queries, keys, values, out, nullptr, proven::kBoundBf16);
  }
  return code;
}
