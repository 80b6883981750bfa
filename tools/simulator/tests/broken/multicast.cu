// Copies by cp.async.bulk into the shared memory of several blocks of a cluster.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL multicast_arrival_relaxed
// Consumers free stages by relaxed arrivals, so the other CTA's copies may overwrite words that the
// consumers have not read yet.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote_relaxed>(in, out);  // FAULT
}

// KERNEL multicast_beyond_cluster
// The mask names a third CTA of a cluster of two.
// EXPECT invalid operand
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 room[32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 128);
  }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0 && threadIdx.x == 0) load_for(room, in, 128, bar, 7);  // FAULT
  wait(bar, 0);
  cluster_arrive();
  cluster_wait();
  out[blockIdx.x * 32 + threadIdx.x] = room[threadIdx.x];
}

// KERNEL multicast_over_stores_of_the_cta
// Consumers write into a stage and then free it in the scope of their own CTA. That does not order
// the copy of the other CTA after their writes.
// EXPECT shared memory race | missing fence
// PROVEN nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote_of_cta, true>(in, out);  // FAULT
}

// KERNEL multicast_over_stores_waited_of_the_cta
// Consumers write into a stage and free it in the scope of the cluster, but the copying warps wait
// in the scope of their own CTA.
// EXPECT shared memory race | missing fence
// PROVEN nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait, arrive_remote, true>(in, out);  // FAULT
}

// KERNEL multicast_to_exited
// A CTA writes to another CTA of its cluster that has exited.
// EXPECT out of bounds | unwaited asynchronous effect
// LAUNCH grid=2
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 room[32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 1) return;
  if (threadIdx.x == 0) {
    expect(bar, 128);
    load_for(room, in, 128, bar, 3);  // FAULT
  }
  wait(bar, 0);
  out[threadIdx.x] = room[threadIdx.x];
}

// KERNEL control_multicast_of_the_cta
// Consumers free stages for the producers of both CTAs in the scope of their own CTA, and the
// producers wait in the scope of theirs. That is enough to know that reads have ended.
// EXPECT nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait, arrive_remote_of_cta>(in, out);
}

// KERNEL control_multicast_over_stores
// Words that consumers wrote into a stage, and fenced, come before the copy of the other CTA if
// arrivals and waits have the scope of the cluster.
// EXPECT nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote, true>(in, out);
}

// KERNEL control_multicast_pipeline
// Each of two CTAs of a cluster copies half of every tile for both. A stage is free when the
// consumers of both CTAs have freed it. Neither CTA exits while the other may still write.
// EXPECT nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster>(in, out);
}
