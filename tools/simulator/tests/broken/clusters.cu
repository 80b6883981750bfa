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
// A CTA adds to a word of its neighbour, which reads the word with no barrier in between.
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
// A CTA writes a word of its neighbour by a generic address, and the neighbour reads the word with
// no barrier in between.
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
// A CTA reads a word that its neighbour writes, and only the neighbour waits.
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
// A barrier of a cluster orders only accesses before the arrival. A warp reads a number after its
// own arrival, and another warp clears the number after its wait. FlashInfer's selection of the
// largest does so.
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
// New mbarriers, and a barrier of the cluster with relaxed arrivals: without fence.mbarrier_init
// nothing makes the mbarriers known.
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
// The neighbour's shared memory is read before the neighbour is known to run.
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
// A warp waits at the barrier of the cluster without having arrived.
// EXPECT barrier misuse
// LAUNCH grid=2 block=64
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) cluster_arrive();
  cluster_wait();  // FAULT
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

// KERNEL control_cluster_atomics
// Two CTAs add to each other's words and to their own, by atomics and by generic addresses. Neither
// exits before the other has finished.
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
// Two CTAs read each other's words. Neither exits before the other has finished.
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
// A number is read before the arrival at a barrier of the cluster, and cleared after the wait. The
// number that is read between the two is never written.
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
// New mbarriers are made known to the cluster by fence.mbarrier_init and a barrier with relaxed
// arrivals, which is the purpose of that fence.
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
