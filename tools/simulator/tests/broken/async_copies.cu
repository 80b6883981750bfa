// Copies by cp.async into shared memory, in groups or for an mbarrier.

// KERNEL copy_never_committed
// wait_group waits only for committed groups, and this copy belongs to none.
// EXPECT access to bytes in flight
// LAUNCH block=32
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[32];
  copy16(&stage[threadIdx.x], in + threadIdx.x);
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x];           // FAULT
  commit();
  wait<0>();
}

// KERNEL copy_of_unsynchronised_writes
// A warp copies asynchronously from global memory that another warp wrote, with no barrier in
// between.
// EXPECT global memory race | uninitialised read
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[256];
  out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
  __syncwarp();
  if (threadIdx.x < 16) copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL copy_source_overwritten
// A lane overwrites global memory that a cp.async of another lane may still read.
// EXPECT access to bytes in flight
// LAUNCH block=32
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[128];
  for (u32 i = threadIdx.x; i < 128; i += 32) out[i] = in[i];
  __syncwarp();
  copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);
  out[127 - threadIdx.x] = 7;  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL overwritten_in_flight
// A plain store writes bytes that a copy may still write.
// EXPECT access to bytes in flight
// LAUNCH block=32
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[32];
  copy16(&stage[threadIdx.x], in + threadIdx.x);
  commit();
  stage[threadIdx.x] = make_uint4(0, 0, 0, 0);     // FAULT
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x];
}

// KERNEL stage_off_by_one
// The reader of a double buffer reads the stage that is being filled.
// EXPECT access to bytes in flight
// LAUNCH block=64
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stages[2][64];
  unsigned sum = 0;
  copy16(&stages[0][threadIdx.x], in + threadIdx.x);
  commit();
#pragma unroll 1
  for (unsigned tile = 0; tile < 4; ++tile) {
    if (tile + 1 < 4) copy16(&stages[(tile + 1) & 1][threadIdx.x], in + (tile + 1) * 64 + threadIdx.x);
    commit();
    wait<1>();
    __syncthreads();
    sum += stages[(tile + 1) & 1][threadIdx.x].x;  // FAULT
    __syncthreads();
  }
  wait<0>();
  out[threadIdx.x] = make_uint4(sum, 0, 0, 0);
}

// KERNEL stage_reused_too_early
// The next tile is copied into a stage that other warps may still read.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=128
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[128];
  copy16(&stage[threadIdx.x], in + threadIdx.x);
  commit();
  wait<0>();
  __syncthreads();
  uint4 first = stage[threadIdx.x ^ 32];           // FAULT
  copy16(&stage[threadIdx.x], in + 128 + threadIdx.x);   // FAULT
  commit();
  wait<0>();
  __syncthreads();
  uint4 second = stage[threadIdx.x ^ 32];
  out[threadIdx.x] = make_uint4(first.x, first.y, second.z, second.w);
}

// KERNEL wait_group_too_lax
// Two groups are in flight. The second one is read after a wait that leaves one group open.
// EXPECT access to bytes in flight
// LAUNCH block=32
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stages[2][32];
  copy16(&stages[0][threadIdx.x], in + threadIdx.x);
  commit();
  copy16(&stages[1][threadIdx.x], in + 32 + threadIdx.x);
  commit();
  wait<1>();
  out[threadIdx.x] = stages[1][threadIdx.x];       // FAULT
}

// KERNEL waited_without_barrier
// Every thread waits for its own copies, and then reads its neighbour's copies, which needs a
// barrier too.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=128
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[128];
  stage[threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  copy16(&stage[threadIdx.x], in + threadIdx.x);   // FAULT
  commit();
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x ^ 64];      // FAULT
}

// KERNEL waited_without_syncwarp
// A wait covers only a thread's own copies. Copies of another lane in the warp need __syncwarp.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=32
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[32];
  stage[threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  copy16(&stage[threadIdx.x], in + threadIdx.x);   // FAULT
  commit();
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x ^ 1];       // FAULT
}

// KERNEL exit_with_copies
// The block ends while a copy into its shared memory is still under way.
// EXPECT unwaited asynchronous effect
// LAUNCH block=32
// ANYLINE
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[32];
  copy16(&stage[threadIdx.x], in + threadIdx.x);
  commit();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL async_arrive_not_waited
// The copies of a thread arrive at an mbarrier when they have landed, but no thread waits for the
// mbarrier.
// EXPECT access to bytes in flight | shared memory race | unwaited asynchronous effect
// LAUNCH block=128
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[512];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 128);
  __syncthreads();
  copy_async(&tile[4 * threadIdx.x], in + 4 * threadIdx.x);
  copies_arrive(full);
  __syncthreads();
  out[threadIdx.x] = tile[511 - threadIdx.x * 4];  // FAULT
}

// KERNEL async_arrive_too_early
// The second copy of each thread is issued after the arrival, which does not wait for it.
// EXPECT access to bytes in flight
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[512];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 64);
  __syncthreads();
  copy_async(&tile[4 * threadIdx.x], in + 4 * threadIdx.x);
  copies_arrive(full);
  copy_async(&tile[256 + 4 * threadIdx.x], in + 256 + 4 * threadIdx.x);
  wait(full, 0);
  out[threadIdx.x] = tile[threadIdx.x] + tile[256 + threadIdx.x];  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// KERNEL async_arrive_without_proxy_fence
// The operands of a product are copied with cp.async, and the copies arrive at an mbarrier. No
// proxy fence follows the wait for it. FlashAttention-3 does so when it gathers pages of keys.
// EXPECT missing fence
// PROVEN nothing
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 128);
  __syncthreads();
  for (u32 i = threadIdx.x; i < 80 * 8; i += 128) copy_async(tile + 4 * i, in + 4 * i);
  copies_arrive(full);
  wait(full, 0);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}

// KERNEL control_async_arrive
// Each thread copies with cp.async, and its copies arrive at an mbarrier when they have landed. A
// thread that waits for the mbarrier may read the copies of other threads.
// EXPECT nothing
// LAUNCH block=128
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[2][512];
  __shared__ u64 full[2];
  if (threadIdx.x < 2) init(full[threadIdx.x], threadIdx.x == 0 ? 128 : 1);
  __syncthreads();
  for (u32 stage = 0; stage < 2; ++stage) {
    copy_async(&tile[stage][4 * threadIdx.x], in + 512 * stage + 4 * threadIdx.x);
  }
  copies_arrive(full[0]);
  // The second mbarrier expects one arrival of its own, and one more for each thread that calls
  // this.
  copies_arrive_beside(full[1]);
  __syncthreads();
  if (threadIdx.x == 0) arrive(full[1]);
  wait(full[0], 0);
  wait(full[1], 0);
  const u32 other = 511 - threadIdx.x * 4;
  out[threadIdx.x] = tile[0][other] + tile[1][other];
}

// KERNEL control_copy_of_synchronised_writes
// A warp copies asynchronously from global memory that another warp wrote before a barrier.
// EXPECT nothing
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[256];
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x < 16) copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_pipeline
// A pipeline of three stages with the minimum of barriers: one for each tile.
// EXPECT nothing
// LAUNCH grid=2 block=128 in=32768
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stages[3][128];
  unsigned sum = 0;
  for (unsigned tile = 0; tile < 2; ++tile) {
    copy16(&stages[tile][threadIdx.x], in + tile * 128 + threadIdx.x);
    commit();
  }
#pragma unroll 1
  for (unsigned tile = 0; tile < 16; ++tile) {
    wait<1>();
    __syncthreads();
    if (tile + 2 < 16) copy16(&stages[(tile + 2) % 3][threadIdx.x], in + (tile + 2) * 128 + threadIdx.x);
    commit();
    sum = sum * 3 + stages[tile % 3][threadIdx.x ^ 96].x;
  }
  out[blockIdx.x * 128 + threadIdx.x] = make_uint4(sum, 0, 0, 0);
}
