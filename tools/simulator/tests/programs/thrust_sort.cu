// Sorts, scans and reduces with Thrust and CUB, on a device of the architecture that the program is
// compiled for and on a newer one.

#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <algorithm>
#include <cub/device/device_reduce.cuh>
#include <numeric>
#include <vector>

#include "check.h"

void sort_and_scan() {
  const int count = 6000;
  unsigned seed = 10;
  std::vector<unsigned> numbers(count);
  for (unsigned& x : numbers) x = next_number(seed) % 1000;

  thrust::device_vector<unsigned> device(numbers.begin(), numbers.end());
  thrust::sort(device.begin(), device.end());
  std::sort(numbers.begin(), numbers.end());
  std::vector<unsigned> result(count);
  thrust::copy(device.begin(), device.end(), result.begin());
  EXPECT(result == numbers);

  thrust::inclusive_scan(device.begin(), device.end(), device.begin());
  thrust::copy(device.begin(), device.end(), result.begin());
  std::partial_sum(numbers.begin(), numbers.end(), numbers.begin());
  EXPECT(result == numbers);
  EXPECT(thrust::reduce(device.begin(), device.end()) ==
         std::accumulate(numbers.begin(), numbers.end(), 0u));

  // Pairs whose number does not fill the last tile.
  thrust::device_vector<unsigned> keys(count), values(count);
  thrust::sequence(keys.begin(), keys.end(), 0u, 7919u);
  thrust::sequence(values.begin(), values.end());
  thrust::sort_by_key(keys.begin(), keys.end(), values.begin(), thrust::greater<unsigned>());
  thrust::copy(values.begin(), values.end(), result.begin());
  for (int i = 0; i < count; ++i) EXPECT(result[i] == static_cast<unsigned>(count - 1 - i));

  thrust::device_vector<unsigned> most(1);
  std::size_t bytes = 0;
  unsigned* const in = thrust::raw_pointer_cast(device.data());
  unsigned* const out = thrust::raw_pointer_cast(most.data());
  CHECK(cub::DeviceReduce::Max(nullptr, bytes, in, out, count));
  thrust::device_vector<char> scratch(bytes);
  CHECK(cub::DeviceReduce::Max(thrust::raw_pointer_cast(scratch.data()), bytes, in, out, count));
  EXPECT(most[0] == numbers.back());
}

int main() {
  for (const int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    sort_and_scan();
  }
  std::printf("numbers are sorted, scanned and reduced\n");
  return 0;
}
