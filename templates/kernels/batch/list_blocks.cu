// Sorts the lists of blocks of requests. It is launched once for each step, before prepare_batch,
// if the problem has such lists.
//
//   list_blocks<<<most requests * Hkv, kListThreads, bytes of a bit for each block>>>(
//       ListBlocksParams)
//
// A CTA for each head of K and V of each request. The sorted list has each block once, in ascending
// order, so the results do not depend on the order of the caller's list. A block outside of the
// request's keys, or one that occurs twice, is left out and recorded as an error.

#include "params/batch_params.h"
#include "tile/bits.cuh"
#include "tile/scan.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kListThreads)
    list_blocks(const __grid_constant__ ListBlocksParams params) {
  enum : int { kWarps = kListThreads / 32 };
  extern __shared__ unsigned named[];  // one bit for each block
  __shared__ long long sums[kWarps];
  __shared__ int wrong;
  const int list = static_cast<int>(blockIdx.x);
  const int request = list / params.kv_heads;
  const int thread = static_cast<int>(threadIdx.x);
  const BlockTables& to = params.listed;
  const int requests = params.requests != nullptr ? *params.requests : params.max_requests;
  if (request >= requests) return;

  const int keys = params.k_length[request];
  const bool is_length = keys >= 0 && keys <= params.keys_of_one;
  const int count = is_length ? (keys + to.block_keys - 1) / to.block_keys : 0;
  const int words = (count + 31) / 32;
  for (int i = thread; i < words; i += kListThreads) named[i] = 0;
  if (thread == 0) wrong = 0;
  __syncthreads();

  const long long first = static_cast<long long>(list) * to.most;
  for (int i = thread; i < to.most; i += kListThreads) {
    const int block = params.blocks[first + i];
    if (block == -1) continue;
    const bool exists = block >= 0 && block < count;
    const unsigned bit = 1u << (static_cast<unsigned>(block) % 32);
    // Several threads may set it, but to the same value.
    if (!exists || (atomicOr(&named[block / 32], bit) & bit) != 0) atomicOr(&wrong, 1);
  }
  __syncthreads();

  long long before = 0;
  for (int base = 0; base < words; base += kListThreads) {
    unsigned bits = base + thread < words ? named[base + thread] : 0;
    const tile::Scanned of_words = tile::scan<tile::Add, kWarps>(__popc(bits), sums);
    int* at = to.blocks + first + before + of_words.before;
    for (; bits != 0; bits &= bits - 1) *at++ = 32 * (base + thread) + __ffs(bits) - 1;
    before += of_words.all;
  }
  if (thread == 0) to.lists[list] = {static_cast<int>(before), wrong};
}

}  // namespace annulus::kernels
