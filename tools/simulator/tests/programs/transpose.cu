// Transposes a matrix through a padded tile in shared memory, and measures it with events.

#include <vector>

#include "check.h"

constexpr int kTile = 32, kRows = 8;

__global__ void transpose(const double* in, double* out, int rows, int columns) {
  __shared__ double tile[kTile][kTile + 1];
  int x = blockIdx.x * kTile + threadIdx.x;
  int y = blockIdx.y * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows) {
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  }
  __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows) {
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

int main() {
  const int rows = 150, columns = 210;
  std::vector<double> in(rows * columns), out(rows * columns);
  for (int i = 0; i < rows * columns; ++i) in[i] = i;
  double *device_in, *device_out;
  const std::size_t bytes = in.size() * sizeof(double);
  CHECK(cudaMalloc(&device_in, bytes));
  CHECK(cudaMalloc(&device_out, bytes));
  CHECK(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
  CHECK(cudaEventRecord(begin));
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<<<grid, dim3(kTile, kRows)>>>(device_in, device_out, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float millis = -1;
  CHECK(cudaEventElapsedTime(&millis, begin, end));
  EXPECT(millis >= 0);
  CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) EXPECT(out[j * rows + i] == in[i * columns + j]);
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  std::printf("%d x %d numbers are transposed\n", rows, columns);
  return 0;
}
