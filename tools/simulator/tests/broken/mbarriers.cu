// Mbarriers without copies.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL mbarrier_after_inval
// An mbarrier is used after it was invalidated.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    invalidate(bar);
    arrive(bar);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_arrive_before_write
// The producer arrives before it writes.
// EXPECT shared memory race | uninitialised read
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    arrive(bar);
    box[threadIdx.x] = in[threadIdx.x];  // FAULT
  } else {
    wait(bar, 0);
    out[threadIdx.x] = box[threadIdx.x ^ 33];  // FAULT
  }
}

// KERNEL mbarrier_completes_too_much
// More bytes than the count holds arrive before they are expected.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    complete(bar, (1 << 20) - 1);
    complete(bar, 1);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_counts_too_many
// The mbarrier is initialised for all lanes of the consumers, but one lane of each warp arrives.
// EXPECT deadlock
// LAUNCH block=96
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full, empty;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) {
    init(full, 32);
    init(empty, 64);
  }
  __syncthreads();
  for (u32 tile = 0; tile < 3; ++tile) {
    if (threadIdx.x < 32) {
      wait(empty, (tile & 1) ^ 1);  // FAULT
      box[threadIdx.x] = in[tile * 32 + threadIdx.x];
      arrive(full);
    } else {
      wait(full, tile & 1);  // FAULT
      out[tile * 96 + threadIdx.x] = box[threadIdx.x & 31];
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(empty);
    }
  }
}

// KERNEL mbarrier_expects_too_much
// An mbarrier counts to 2^20 - 1 bytes, and two arrivals expect 16 more.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 3);
    expect(bar, (1 << 20) - 16);
    expect(bar, 32);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_for_nobody
// An mbarrier is initialised for no arrivals.
// EXPECT invalid operand
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, in[0]);  // FAULT
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_for_too_many
// An mbarrier is initialised for more than 2^20 - 1 arrivals.
// EXPECT invalid operand
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1 << 20);  // FAULT
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_initialised_twice
// An mbarrier is initialised again without having been invalidated.
// EXPECT barrier misuse
// PROVEN nothing
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  for (int tile = 0; tile < 2; ++tile) {
    if (threadIdx.x == 0) init(bar, 32);  // FAULT
    __syncthreads();
    arrive(bar);
    wait(bar, 0);
    __syncthreads();
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_lane_arrives_for_warp
// One lane signals that the stage is empty before the others have read it.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full, empty;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) {
    init(full, 32);
    init(empty, 1);
  }
  __syncthreads();
  for (u32 tile = 0; tile < 5; ++tile) {
    if (threadIdx.x < 32) {
      wait(empty, (tile & 1) ^ 1);
      box[threadIdx.x] = in[tile * 32 + threadIdx.x];  // FAULT
      arrive(full);
    } else {
      wait(full, tile & 1);
      out[tile * 64 + threadIdx.x] = box[threadIdx.x ^ 33];  // FAULT
      if (threadIdx.x == 32) arrive(empty);
    }
  }
}

// KERNEL mbarrier_no_complete
// The last arrival has .noComplete although it completes the phase.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 2);
    arrive(bar);
    arrive_without_completing(bar);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_not_initialised
// The mbarrier is never initialised.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  arrive(bar);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_old_state
// A thread waits with a state of two phases ago.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  const u64 first = arrive_for_state(bar);
  wait(bar, 0);
  arrive(bar);
  wait(bar, 1);
  out[threadIdx.x] = test_state(bar, first) ? in[threadIdx.x] : 0;  // FAULT
}

// KERNEL mbarrier_overwritten_too_early
// The producer waits until the stage is empty, but only after it has filled it again.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full[2], empty[2];
  __shared__ u32 box[2][32];
  if (threadIdx.x == 0) {
    for (u32 stage = 0; stage < 2; ++stage) {
      init(full[stage], 32);
      init(empty[stage], 32);
    }
  }
  __syncthreads();
  for (u32 tile = 0; tile < 6; ++tile) {
    const u32 stage = tile & 1;
    const u32 parity = tile / 2 & 1;
    if (threadIdx.x < 32) {
      box[stage][threadIdx.x] = in[tile * 32 + threadIdx.x];  // FAULT
      wait(empty[stage], parity ^ 1);
      arrive(full[stage]);
    } else {
      wait(full[stage], parity);
      out[tile * 64 + threadIdx.x] = box[stage][threadIdx.x ^ 33];  // FAULT
      arrive(empty[stage]);
    }
  }
}

// KERNEL mbarrier_parity_two
// The number of the phase is passed in place of its parity.
// EXPECT invalid operand
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  __syncthreads();
  for (u32 i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) arrive(bar);
    wait(bar, i);  // FAULT
    __syncthreads();
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_polled_for_ever
// The consumer tests for a phase that never ends, by tests that never suspend.
// EXPECT deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 33);
  __syncthreads();
  if (threadIdx.x < 32) {
    arrive(bar);
  } else {
    while (!test(bar, 0)) {  // FAULT
    }
    out[threadIdx.x] = in[threadIdx.x];
  }
}

// KERNEL mbarrier_read_as_memory
// The eight bytes of an mbarrier are read as memory.
// EXPECT barrier misuse
extern "C" __global__ void broken(const u32* in, u64* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  arrive(bar);
  out[threadIdx.x] = *static_cast<volatile u64*>(&bar);  // FAULT
}

// KERNEL mbarrier_too_many_arrivals
// The last arrival counts for two, but only one arrival is missing.
// EXPECT barrier misuse
// LAUNCH block=32
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 63);
  __syncthreads();
  arrive(bar, 2);  // FAULT
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_two_phases_behind
// A warp waits for phase 0 when phases 0 and 1 are over. The parity then means phase 2, which never
// ends.
// EXPECT deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar, later;
  if (threadIdx.x == 0) {
    init(bar, 1);
    init(later, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive(bar);
    arrive(bar);
    arrive(later);
  }
  if (threadIdx.x >= 32) {
    wait(later, 0);
    wait(bar, 0);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_used_before_sync
// There is no barrier between the initialisation of the mbarrier and its users.
// EXPECT shared memory race | barrier misuse
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 64);
  arrive(bar);  // FAULT
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL mbarrier_wrong_parity
// The consumer waits for the phase after the one that ends.
// EXPECT deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    box[threadIdx.x] = in[threadIdx.x];
    arrive(bar);
  } else {
    wait(bar, 0);
    wait(bar, 1);  // FAULT
    out[threadIdx.x] = box[threadIdx.x ^ 33];
  }
}

// KERNEL control_mbarrier_limits
// The largest counts, bytes that arrive before they are expected, and an mbarrier that is
// initialised where another one was invalidated.
// EXPECT nothing
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, (1 << 20) - 1);
    arrive(bar, (1 << 20) - 2);
    complete(bar, (1 << 20) - 1);
    expect(bar, (1 << 20) - 1);
    wait(bar, 0);
    invalidate(bar);
    init(bar, 2);
    arrive_without_completing(bar);
    arrive(bar);
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL control_mbarrier_pipeline
// Two stages, with the minimum of waits and arrivals.
// EXPECT nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full[2], empty[2];
  __shared__ u32 box[2][32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 32);
      init(empty[i], 2);
    }
  }
  __syncthreads();
  u32 total = 0;
#pragma unroll 1
  for (u32 tile = 0; tile < 13; ++tile) {
    const u32 stage = tile & 1;
    const u32 parity = tile / 2 & 1;
    if (threadIdx.x < 32) {
      wait(empty[stage], parity ^ 1);
      box[stage][threadIdx.x] = in[tile * 32 + threadIdx.x];
      arrive(full[stage]);
    } else {
      while (!test(full[stage], parity)) {
      }
      total = total * 3 + box[stage][threadIdx.x & 31 ^ 5];
      __syncwarp();
      if (elect()) arrive(empty[stage]);
    }
  }
  out[blockIdx.x * 96 + threadIdx.x] = total;
}
