// Barriers of a block or of some of its warps.

// KERNEL barrier_again_too_early
// A warp that has arrived at a barrier arrives there again before the barrier is complete, which is
// undefined.
// EXPECT barrier misuse | deadlock
// PROVEN deadlock
// LAUNCH block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 96;" ::: "memory");
    sync_some<96>(1);  // FAULT
  } else {
    sync_some<96>(1);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_arrive_then_wait
// A barrier is for two warps. A single warp arrives at it and then waits at it. If arrivals count,
// and not warps, that completes the barrier. FlashAttention-3 hands turns over in this way.
// EXPECT barrier misuse
// PROVEN nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    sync_some<64>(1);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_count_odd
// The count of a barrier is not a multiple of the warp size.
// EXPECT invalid operand | barrier misuse
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned count = 48 + (in[0] & 0);
  asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");   // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_counts_differ
// The warps give different numbers of threads for the barrier.
// EXPECT barrier misuse | deadlock
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 128;" ::: "memory"); // FAULT
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_for_fewer
// Four warps use a barrier for 96 threads. The fourth starts a new phase and waits for ever.
// EXPECT deadlock | barrier misuse
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  asm volatile("bar.sync 1, 96;" ::: "memory");    // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_not_reached
// One warp waits at another barrier than the rest, so no warp can continue.
// EXPECT deadlock
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    asm volatile("bar.sync 1, 128;" ::: "memory"); // FAULT
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory"); // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL barrier_of_too_many
// Three warps arrive at a barrier for two, and the third one waits for a fourth that never arrives.
// EXPECT barrier misuse | deadlock
// LAUNCH block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  sync_some<64>(2);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL arrive_without_return
// The producer announces a full buffer, and fills it again without waiting until it is empty.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned box[32];
  unsigned lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    box[lane] = in[lane];                          // FAULT
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    box[lane] = in[lane + 32];                     // FAULT
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[lane] = box[lane ^ 3];                     // FAULT
  }
}

// KERNEL divergent_barrier
// Half of a warp calls the barrier.
// EXPECT divergent barrier | deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if ((threadIdx.x & 31) < 16) {
    __syncthreads();                               // FAULT
    value += 1;
  } else {
    while (*const_cast<const volatile unsigned*>(in) == 12345) value += 2;
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT
  }
  out[threadIdx.x] = value;
}

// KERNEL control_named_barriers
// Producer and consumer warps pass a buffer to each other with bar.arrive and bar.sync.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned box[32];
  unsigned lane = threadIdx.x & 31;
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned turn = 0; turn < 6; ++turn) {
    if (threadIdx.x < 32) {
      box[lane] = in[lane + turn];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += box[lane ^ 5];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  out[threadIdx.x] = sum;
}

// KERNEL control_early_return
// A barrier does not wait for threads that have exited.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  if (threadIdx.x >= 70) {
    out[threadIdx.x] = 1;
    return;
  }
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[69 - threadIdx.x];
}

// KERNEL control_early_return_of_lanes
// Some lanes of a warp return before a barrier. CUDA C++ lets __syncthreads wait for the threads
// that have not exited.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned room[64];
  out[threadIdx.x] = 0;
  if (in[threadIdx.x] >= 41) return;
  room[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = room[40 - threadIdx.x];
}
