// Solves a tridiagonal system by conjugate gradients in one cooperative kernel, whose blocks wait
// for each other with grid.sync().

#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

struct System {
  int size;
  const double* right;
  double *x, *r, *p, *q;
  double* dots;  // one for each dot product
};

__device__ double times_matrix(const double* v, int i, int size) {
  return 4 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < size ? v[i + 1] : 0);
}

__device__ void add_dot(double part, double* dot) {
  for (int step = 16; step > 0; step /= 2) part += __shfl_xor_sync(~0u, part, step);
  if (threadIdx.x % 32 == 0) atomicAdd(dot, part);
}

__global__ void solve(System system, int steps) {
  const cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  const bool mine = i < system.size;
  double part = 0;
  if (mine) {
    system.x[i] = 0;
    system.r[i] = system.p[i] = system.right[i];
    part = system.right[i] * system.right[i];
  }
  add_dot(part, &system.dots[0]);
  grid.sync();
  for (int step = 0; step < steps; ++step) {
    double* const dots = system.dots + 2 * step;
    if (mine) system.q[i] = times_matrix(system.p, i, system.size);
    add_dot(mine ? system.p[i] * system.q[i] : 0, &dots[1]);
    grid.sync();
    const double alpha = dots[0] / dots[1];
    part = 0;
    if (mine) {
      system.x[i] += alpha * system.p[i];
      system.r[i] -= alpha * system.q[i];
      part = system.r[i] * system.r[i];
    }
    add_dot(part, &dots[2]);
    grid.sync();
    if (mine) system.p[i] = system.r[i] + dots[2] / dots[0] * system.p[i];
    grid.sync();
  }
}

int main() {
  int cooperative = 0, multiprocessors = 0, blocks = 0;
  CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, solve, 128, 0));
  EXPECT(cooperative == 1);
  const int size = 1000, threads = 128, grid = (size + threads - 1) / threads;
  int steps = 20;
  EXPECT(grid <= blocks * multiprocessors);

  unsigned seed = 9;
  std::vector<double> right(size), x(size);
  for (double& value : right) value = next_float(seed);
  System system{};
  system.size = size;
  double* vectors;
  CHECK(cudaMalloc(&vectors, 5 * size * sizeof(double)));
  CHECK(cudaMalloc(&system.dots, (2 * steps + 1) * sizeof(double)));
  CHECK(cudaMemset(system.dots, 0, (2 * steps + 1) * sizeof(double)));
  CHECK(cudaMemcpy(vectors, right.data(), size * sizeof(double), cudaMemcpyHostToDevice));
  system.right = vectors;
  system.x = vectors + size;
  system.r = vectors + 2 * size;
  system.p = vectors + 3 * size;
  system.q = vectors + 4 * size;
  void* arguments[] = {&system, &steps};
  CHECK(cudaLaunchCooperativeKernel(solve, grid, threads, arguments));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(x.data(), system.x, size * sizeof(double), cudaMemcpyDeviceToHost));
  for (int i = 0; i < size; ++i) {
    const double left = 4 * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < size ? x[i + 1] : 0);
    EXPECT(near(left, right[i], 1e-7));
  }
  EXPECT(cudaLaunchCooperativeKernel(solve, 100000, threads, arguments) ==
         cudaErrorCooperativeLaunchTooLarge);
  std::printf("%d equations are solved\n", size);
  return 0;
}
