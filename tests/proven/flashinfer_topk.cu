// FlashInfer's selections of the largest numbers of each row, by CTAs that exchange counts.
//
// VARIANT 0: several CTAs take a row and synchronise by counters in global memory, with release and
// acquire; 1: a cluster takes a row, reads histograms of its other CTAs, and adds to a counter of
// one of them.
#include <algorithm>
#include <numeric>
#include <set>

#include <flashinfer/math.cuh>
#include <flashinfer/topk.cuh>
#if VARIANT == 1
#include <flashinfer/fast_topk_clusters_exact.cuh>
#endif

#include "support.h"

#define CHECK(call) proven::check(static_cast<int>(call), #call)

#if VARIANT == 2
int main() {
  proven::use_device(8);
  constexpr int kRows = 2, kMost = 100, kCount = 90000;
  proven::Array<float> in(kRows * kCount), out(kRows * kCount);
  proven::Array<flashinfer::sampling::RadixRowState> states(kRows);
  in.normal(1);
  for (float& number : in.host) number = std::exp(4 * number) / (kCount * 3000.f);
  in.upload();
  CHECK(cudaMemset(states.device, 0, states.bytes()));
  CHECK((flashinfer::sampling::RadixTopKRenormProbMultiCTA<float, int>(
      in.device, out.device, nullptr, kRows, kMost, kCount, states.device, true)));
  proven::finish_launch("FlashInfer");
  out.download();

  proven::Answer answer;
  for (int row = 0; row < kRows; ++row) {
    const float* given = &in.host[row * kCount];
    std::vector<float> all(given, given + kCount);
    std::sort(all.begin(), all.end(), std::greater<>());
    const double sum = std::accumulate(all.begin(), all.begin() + kMost, 0.0);
    for (int i = 0; i < kCount; ++i)
      answer.add(out.host[row * kCount + i], given[i] >= all[kMost - 1] ? given[i] / sum : 0);
  }
  return answer.finish(1e-3);
}
#else
int main() {
  proven::use_device(VARIANT == 0 ? 8 : 9);
  constexpr int kRows = 2, kMost = 100, kCtas = 4, kKept = 512;
  constexpr int kCount = VARIANT == 0 ? 90000 : 20000;  // more than the memory of one CTA holds
  proven::Array<float> numbers(kRows * kCount), values(kRows * kMost);
  proven::Array<int> indices(kRows * kMost);
  numbers.normal(1);
#if VARIANT == 0
  proven::Array<flashinfer::sampling::RadixRowState> states(kRows);
  CHECK(cudaMemset(states.device, 0, states.bytes()));
  CHECK((flashinfer::sampling::RadixTopKMultiCTA<float, int>(numbers.device, indices.device,
                                                             values.device, nullptr, kRows, kMost,
                                                             kCount, states.device, false)));
#else
  // The numbers that do not fit into shared memory.
  proven::Array<int> more(kRows * kCtas * 4 * kCount);
  flashinfer::sampling::launch_fast_topk_clusters_exact<float>(
      numbers.device, indices.device, values.device, kCount, nullptr, more.device, kCount, kRows,
      kCount, kMost, kKept, kCtas, false, kMost, nullptr);
#endif
  proven::finish_launch("FlashInfer");
  indices.download(), values.download();

  proven::Answer answer;
  for (int row = 0; row < kRows; ++row) {
    std::vector<float> all(&numbers.host[row * kCount], &numbers.host[row * kCount] + kCount);
    const int* chosen = &indices.host[row * kMost];
    std::vector<float> got(&values.host[row * kMost], &values.host[row * kMost] + kMost);
    for (int i = 0; i < kMost; ++i)
      if (chosen[i] < 0 || chosen[i] >= kCount || all[chosen[i]] != got[i]) answer.add(NAN, 0);
    if (std::set<int>(chosen, chosen + kMost).size() != kMost) answer.add(NAN, 0);
    std::sort(all.begin(), all.end(), std::greater<>());
    std::sort(got.begin(), got.end(), std::greater<>());
    for (int i = 0; i < kMost; ++i) answer.add(got[i], all[i]);
  }
  return answer.finish(0);
}
#endif
