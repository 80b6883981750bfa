// Clusters: their barrier, and accesses to the shared memory of other blocks.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL cluster_arrive_twice
// A thread arrives twice at the barrier of the cluster with no wait in between.
// EXPECT barrier misuse
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  cluster_arrive();
  cluster_arrive();  // FAULT
  cluster_wait();
  out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];
}

// KERNEL cluster_atomic_race
// A CTA counts in its neighbour's word, which reads it with no barrier in between.
// EXPECT shared memory race
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count;
  if (threadIdx.x == 0) count = in[0];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0 && threadIdx.x == 0) add_remote(&count, 1, 1);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = count;                      // FAULT
  cluster_arrive();
  cluster_wait();
}

// KERNEL cluster_exit_too_early
// Nothing keeps a CTA from exiting while its neighbour reads.
// EXPECT unwaited asynchronous effect | out of bounds
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  const u32 there = remote(&box[threadIdx.x], cluster_rank() ^ 1);
  out[blockIdx.x * 32 + threadIdx.x] = load_remote(there);  // FAULT
}

// KERNEL cluster_generic_race
// A CTA writes by a generic address what its neighbour reads, with no barrier in between.
// EXPECT shared memory race
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) store_generic(&box[threadIdx.x], 1, 5);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = box[threadIdx.x];     // FAULT
  cluster_arrive();
  cluster_wait();
}

// KERNEL cluster_race
// A CTA reads what its neighbour writes, and only the neighbour waits.
// EXPECT shared memory race | uninitialised read
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) store_remote(remote(&box[threadIdx.x], 1), in[threadIdx.x] + 1);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = box[threadIdx.x];  // FAULT
  cluster_arrive();
  cluster_wait();
}

// KERNEL cluster_rank_beyond
// A cluster of two has no CTA 2.
// EXPECT invalid operand
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  const u32 there = remote(&box[threadIdx.x], cluster_rank() + 1);  // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = load_remote(there);
  cluster_arrive();
  cluster_wait();
}

// KERNEL cluster_read_behind_arrival
// A barrier of a cluster orders what comes before the arrival: a warp reads a number behind its own,
// and another, past its wait, clears it. FlashInfer's selection of the largest does so.
// EXPECT shared memory race
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count;
  if (threadIdx.x == 0) count = in[blockIdx.x];
  __syncthreads();
  cluster_arrive();
  const u32 seen = count;  // FAULT
  cluster_wait();
  if (threadIdx.x == 0) count = 0;  // FAULT
  out[blockIdx.x * 64 + threadIdx.x] = seen;
}

// KERNEL cluster_relaxed_barrier_without_fence
// New mbarriers, and a barrier of the cluster whose arrivals are relaxed: fence.mbarrier_init is
// missing, so nothing makes them known.
// EXPECT shared memory race | missing fence
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 32) {
    expect(bar, 256);  // FAULT
    if (blockIdx.x == 0) load_for(tile, in, 256, bar, 3);  // FAULT
  }
  wait(bar, 0);  // FAULT
  out[threadIdx.x + blockIdx.x * 64] = tile[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// KERNEL cluster_used_before_start
// The neighbour's shared memory is read before it is known to run.
// EXPECT shared memory race
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const u32 there = remote(&box[threadIdx.x], cluster_rank() ^ 1);
  out[blockIdx.x * 32 + threadIdx.x] = load_remote(there);  // FAULT
  cluster_arrive();
  cluster_wait();
}

// KERNEL cluster_wait_without_arrival
// A warp waits at the barrier of the cluster where it has not arrived.
// EXPECT barrier misuse
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) cluster_arrive();
  cluster_wait();  // FAULT
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

// KERNEL control_cluster_atomics
// Two CTAs count in each other's words and in their own, by atomics and by generic addresses, and neither
// leaves before the other has.
// EXPECT nothing
// LAUNCH grid=4 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 counts[8];
  if (threadIdx.x < 8) counts[threadIdx.x] = 0;
  cluster_arrive();
  cluster_wait();
  for (u32 rank = 0; rank < 2; ++rank) add_remote(&counts[in[threadIdx.x] % 8], rank, 1);
  cluster_arrive();
  cluster_wait();
  out[blockIdx.x * 64 + threadIdx.x] =
      load_generic(&counts[threadIdx.x % 8], cluster_rank() ^ 1) - counts[threadIdx.x % 8];
  cluster_arrive();
  cluster_wait();
}

// KERNEL control_cluster_exchange
// Two CTAs read each other's words, and neither leaves before the other has.
// EXPECT nothing
// LAUNCH grid=4 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[64];
  u32 total = 0;
#pragma unroll 1
  for (u32 i = 0; i < 4; ++i) {
    box[threadIdx.x] = in[i * 128 + blockIdx.x * 64 + threadIdx.x];
    cluster_arrive();
    cluster_wait();
    total = total * 3 + load_remote(remote(&box[threadIdx.x ^ 40], cluster_rank() ^ 1));
    cluster_arrive();
    cluster_wait();
  }
  out[blockIdx.x * 64 + threadIdx.x] = total;
}

// KERNEL control_cluster_read_before_arrival
// A number is read before the arrival at a barrier of the cluster, and cleared behind the wait; what
// is read in between, nobody writes.
// EXPECT nothing
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count, other;
  if (threadIdx.x == 0) count = in[blockIdx.x], other = in[blockIdx.x + 2];
  __syncthreads();
  const u32 seen = count;
  cluster_arrive();
  const u32 more = other;
  cluster_wait();
  if (threadIdx.x == 0) count = 0;
  out[blockIdx.x * 64 + threadIdx.x] = seen + more;
}

// KERNEL control_cluster_relaxed_barrier
// New mbarriers are made known to the cluster by fence.mbarrier_init and a barrier whose arrivals are
// relaxed, which is what that fence is for.
// EXPECT nothing
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 32) {
    expect(bar, 256);
    if (blockIdx.x == 0) load_for(tile, in, 256, bar, 3);
  }
  wait(bar, 0);
  out[threadIdx.x + blockIdx.x * 64] = tile[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
