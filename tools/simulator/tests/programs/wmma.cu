// Multiplies matrices by nvcuda::wmma, in each of its types and shapes with eight bits and more.
// Each warp computes a tile of the result, and reads A and B from global or from shared memory.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>
#include <vector>

#include "check.h"

namespace wmma = nvcuda::wmma;

constexpr int kSteps = 3;  // steps along k
constexpr int kPad = 16;   // extra elements at the end of each row of B in shared memory

// The type of a fragment's elements in memory: tf32 is stored as float.
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, float, T>;

// d = 2 a b + c. A has rows of kSteps * K elements, or columns of 2 M elements. B has 2 N columns.
// The factor 2 is applied to all elements of a fragment alike, which is the only allowed way.
template <typename T, typename Sum, int M, int N, int K, typename LayoutA, typename LayoutB,
          bool kShared>
__global__ void multiply(const Stored<T>* a, const Stored<T>* b, const Sum* c, Sum* d) {
  constexpr bool kRowsA = std::is_same_v<LayoutA, wmma::row_major>;
  constexpr bool kRowsB = std::is_same_v<LayoutB, wmma::row_major>;
  constexpr int kInner = kSteps * K;
  constexpr int kRows = 2 * M, kColumns = 2 * N;
  const int row = M * blockIdx.x, column = N * blockIdx.y;
  constexpr int kStaged = (kRowsB ? N : K) + kPad;
  __shared__ alignas(32) Stored<T> staged[(kRowsB ? K : N) * kStaged];

  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum, result;
  wmma::fill_fragment(sum, Sum(0));
  for (int k = 0; k < kInner; k += K) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> part_a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> part_b;
    wmma::load_matrix_sync(part_a, kRowsA ? a + row * kInner + k : a + k * kRows + row,
                           kRowsA ? kInner : kRows);
    const Stored<T>* from = kRowsB ? b + k * kColumns + column : b + column * kInner + k;
    const int stride = kRowsB ? kColumns : kInner;
    if (kShared) {
      __syncwarp();
      for (int i = threadIdx.x; i < K * N; i += 32) {
        const int line = i / (kRowsB ? N : K), at = i % (kRowsB ? N : K);
        staged[line * kStaged + at] = from[line * stride + at];
      }
      __syncwarp();
      wmma::load_matrix_sync(part_b, staged, kStaged);
    } else {
      wmma::load_matrix_sync(part_b, from, stride);
    }
    for (int i = 0; i < part_a.num_elements; ++i) {
      if constexpr (std::is_same_v<T, wmma::precision::tf32>) {
        part_a.x[i] = wmma::__float_to_tf32(part_a.x[i]);
      }
      part_a.x[i] = part_a.x[i] + part_a.x[i];
    }
    if constexpr (std::is_same_v<T, wmma::precision::tf32>) {
      for (int i = 0; i < part_b.num_elements; ++i) {
        part_b.x[i] = wmma::__float_to_tf32(part_b.x[i]);
      }
    }
    wmma::mma_sync(sum, part_a, part_b, sum);
  }
  const int at = row * kColumns + column;
  wmma::load_matrix_sync(result, c + at, kColumns, wmma::mem_row_major);
  for (int i = 0; i < result.num_elements; ++i) result.x[i] = result.x[i] + sum.x[i];
  wmma::store_matrix_sync(d + at, result, kColumns, wmma::mem_row_major);
}

template <typename T>
double value(T x) {
  if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <typename T, typename Sum, int M, int N, int K, typename LayoutA, typename LayoutB,
          bool kShared>
void check() {
  constexpr int kInner = kSteps * K;
  constexpr bool kRowsA = std::is_same_v<LayoutA, wmma::row_major>;
  constexpr bool kRowsB = std::is_same_v<LayoutB, wmma::row_major>;
  constexpr int kRows = 2 * M, kColumns = 2 * N;
  // A tile that begins 8 elements of f16 into a line does not have the required alignment.
  const dim3 grid(M == 8 ? 1 : 2, N == 8 ? 1 : 2);
  unsigned seed = M + 3 * N + sizeof(Stored<T>);
  // Small integers, whose sums are exact in every type.
  const auto fill = [&](auto& numbers) {
    for (auto& x : numbers) {
      const int number = next_number(seed) >> 29;
      x = static_cast<float>(number - (std::is_same_v<T, unsigned char> ? 0 : 4));
    }
  };
  std::vector<Stored<T>> a(kRows * kInner), b(kInner * kColumns);
  std::vector<Sum> c(kRows * kColumns), d(kRows * kColumns);
  fill(a);
  fill(b);
  fill(c);
  Stored<T>*device_a, *device_b;
  Sum *device_c, *device_d;
  CHECK(cudaMalloc(&device_a, a.size() * sizeof(a[0])));
  CHECK(cudaMalloc(&device_b, b.size() * sizeof(b[0])));
  CHECK(cudaMalloc(&device_c, c.size() * sizeof(Sum)));
  CHECK(cudaMalloc(&device_d, d.size() * sizeof(Sum)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(a[0]), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(b[0]), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_c, c.data(), c.size() * sizeof(Sum), cudaMemcpyHostToDevice));
  multiply<T, Sum, M, N, K, LayoutA, LayoutB, kShared>
      <<<grid, 32>>>(device_a, device_b, device_c, device_d);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof(Sum), cudaMemcpyDeviceToHost));
  for (int i = 0; i < M * static_cast<int>(grid.x); ++i) {
    for (int j = 0; j < N * static_cast<int>(grid.y); ++j) {
      double sum = value(c[i * kColumns + j]);
      for (int k = 0; k < kInner; ++k) {
        sum += 2 * value(a[kRowsA ? i * kInner + k : k * kRows + i]) *
               value(b[kRowsB ? k * kColumns + j : j * kInner + k]);
      }
      EXPECT(value(d[i * kColumns + j]) == sum);
    }
  }
  for (void* memory : {(void*)device_a, (void*)device_b, (void*)device_c, (void*)device_d}) {
    CHECK(cudaFree(memory));
  }
}

template <typename T, typename Sum, int M, int N, int K>
void check_layouts() {
  check<T, Sum, M, N, K, wmma::row_major, wmma::col_major, false>();
  check<T, Sum, M, N, K, wmma::row_major, wmma::row_major, true>();
  check<T, Sum, M, N, K, wmma::col_major, wmma::col_major, true>();
  check<T, Sum, M, N, K, wmma::col_major, wmma::row_major, false>();
}

template <typename T, typename Sum>
void check_shapes() {
  check_layouts<T, Sum, 16, 16, 16>();
  check_layouts<T, Sum, 8, 32, 16>();
  check_layouts<T, Sum, 32, 8, 16>();
}

int main() {
  check_shapes<__half, float>();
  check_shapes<__half, __half>();
  check_shapes<__nv_bfloat16, float>();
  check_shapes<signed char, int>();
  check_shapes<unsigned char, int>();
  check_layouts<wmma::precision::tf32, float, 16, 16, 8>();
  check_layouts<double, double, 8, 8, 4>();
  std::printf("68 products are right\n");
  return 0;
}
