// CUB's selection of the largest numbers of each row. Clusters add to histograms in the shared
// memory of one CTA. The release is newer than the toolkit's.
#include <cub/device/device_batched_topk.cuh>
#include <cuda/execution>
#include <cuda/iterator>
#include <functional>

#include "support.h"

constexpr int kRows = 2, kMost = 100, kCount = 150000;  // more than the memory of one CTA holds

struct RowOf {
  float* first;
  int stride;
  __host__ __device__ float* operator()(int row) const { return first + int64_t(row) * stride; }
};

static auto rows(float* first, int stride) {
  return cuda::transform_iterator(cuda::counting_iterator<int>(0), RowOf{first, stride});
}

int main() {
  proven::use_device(9);
  proven::Array<float> numbers(kRows * kCount), values(kRows * kMost);
  numbers.normal(1);
  const auto wanted = cuda::std::execution::env{cuda::execution::require(
      cuda::execution::determinism::gpu_to_gpu, cuda::execution::tie_break::prefer_smaller_index,
      cuda::execution::output_ordering::unsorted)};
  size_t bytes = 0;
  auto select = [&](void* memory) {
    proven::check(cub::DeviceBatchedTopK::MaxKeys(
                      memory, bytes, rows(numbers.device, kCount), rows(values.device, kMost),
                      cuda::args::constant<kCount>{}, cuda::args::constant<kMost>{}, kRows, wanted),
                  "MaxKeys");
  };
  select(nullptr);
  proven::Array<char> memory(bytes);
  select(memory.device);
  proven::finish_launch("DeviceBatchedTopK");
  values.download();

  proven::Answer answer;
  for (int row = 0; row < kRows; ++row) {
    std::vector<float> all(&numbers.host[row * kCount], &numbers.host[row * kCount] + kCount);
    std::vector<float> got(&values.host[row * kMost], &values.host[row * kMost] + kMost);
    std::sort(all.begin(), all.end(), std::greater<>());
    std::sort(got.begin(), got.end(), std::greater<>());
    for (int i = 0; i < kMost; ++i) answer.add(got[i], all[i]);
  }
  return answer.finish(0);
}
