// ThunderKittens' attention for sm_90a by its load-compute-finish template: bf16, head dim 128, not
// causal. PROGRAM is the library's file, whose main is put aside.
#define main library_main
#include <chrono>

#include PROGRAM
#undef main

#include "attention.h"

int main() {
  proven::use_device(9);
  using Template = attn_fwd_template<128>;
  using Layout = Template::layout;
  // Its tensors are [B, H, S, D]; with one head that is the order of `Attention`.
  const proven::Attention p{2, 1, 1, 384, 512, 128, false};
  proven::Array<bf16> q(size_t(p.batch) * p.queries * 128), k(size_t(p.batch) * p.keys * 128);
  proven::Array<bf16> v(k.host.size()), o(q.host.size());
  q.normal(1), k.normal(2), v.normal(3);
  const size_t batch = p.batch, queries = p.queries, keys = p.keys;
  Layout::globals globals{Layout::qo_global{o.device, batch, size_t(1), queries, nullptr},
                          Layout::qo_global{q.device, batch, size_t(1), queries, nullptr},
                          Layout::kv_global{k.device, batch, size_t(1), keys, nullptr},
                          Layout::kv_global{v.device, batch, size_t(1), keys, nullptr}};
  const int shared = kittens::MAX_SHARED_MEMORY - 2000;
  auto* kernel = &prototype::lcf::kernel<Template>;
  proven::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                "cudaFuncSetAttribute");
  kernel<<<2, prototype::detail::NUM_THREADS_v<Template>, shared>>>(globals);
  proven::finish_launch("attn_fwd_template");
  o.download();
  return proven::compare(p, q.host, k.host, v.host, o.host, nullptr, proven::kBoundBf16);
}
