// Atomics in shared memory, and locks and tickets that are built from them.

// KERNEL atomic_of_lane_after_store
// A lane sets a word, and all lanes of its warp then count in it, with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = in[1];  // FAULT
  out[threadIdx.x] = atomicAdd(&next, 1);  // FAULT
}

// KERNEL atomic_overwritten_by_other_lane
// Lanes count by atomics, and a lane of the same warp sets the word with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncwarp();
  atomicAdd(&total, in[threadIdx.x]);  // FAULT
  if (threadIdx.x == 0) total = 100;  // FAULT
  __syncwarp();
  out[threadIdx.x] = total;
}

// KERNEL atomic_read_by_other_lane
// Lanes count by atomics, and a lane of the same warp reads the counts with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned counts[4];
  if (threadIdx.x < 4) counts[threadIdx.x] = 0;
  __syncwarp();
  atomicAdd(&counts[in[threadIdx.x] % 4], 1);  // FAULT
  if (threadIdx.x == 0) out[0] = counts[0] + counts[1] + counts[2] + counts[3];  // FAULT
}

// KERNEL compare_and_swap_after_load
// An ordinary load begins the loop of the CUDA Programming Guide that makes any operation atomic.
// EXPECT shared memory race
// PROVEN nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  const unsigned long long mine = in[threadIdx.x];
  unsigned long long old = best;
  unsigned long long assumed;
  do {
    assumed = old;
    old = atomicCAS(&best, assumed, assumed > mine ? assumed : mine);  // FAULT
  } while (assumed != old);
  __syncthreads();
  out[threadIdx.x] = static_cast<unsigned>(best);
}

// KERNEL compare_and_swap_beside_store
// A warp sets the word while another warp is in its loop of compare and swap.
// EXPECT shared memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    unsigned old = sum;  // FAULT
    unsigned assumed;
    do {
      assumed = old;
      old = atomicCAS(&sum, assumed, assumed + in[threadIdx.x]);  // FAULT
    } while (assumed != old);
  }
  if (threadIdx.x == 0) sum = in[0];  // FAULT
  __syncthreads();
  out[threadIdx.x] = sum;
}

// KERNEL compare_and_swap_of_global
// The same loop between blocks: each begins with an ordinary load of a word that other blocks
// change.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=4 block=64

extern "C" __global__ void broken(unsigned* in, unsigned* out) {
  const unsigned mine = in[1 + blockIdx.x * 64 + threadIdx.x];
  unsigned old = in[0];  // FAULT
  unsigned assumed;
  do {
    assumed = old;
    old = atomicCAS(in, assumed, assumed + mine);  // FAULT
  } while (assumed != old);
  out[blockIdx.x * 64 + threadIdx.x] = mine;
}

// KERNEL control_compare_and_swap
// A volatile load begins the loop of the CUDA Programming Guide that makes any operation atomic.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  const unsigned long long mine = in[threadIdx.x];
  unsigned long long old = *static_cast<volatile unsigned long long*>(&best);
  unsigned long long assumed;
  do {
    assumed = old;
    old = atomicCAS(&best, assumed, assumed > mine ? assumed : mine);
  } while (assumed != old);
  __syncthreads();
  out[threadIdx.x] = static_cast<unsigned>(best);
}

// KERNEL control_shared_atomics
// Atomics on one word of shared memory need no order among themselves.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, in[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = total;
}

// KERNEL control_lock_in_shared
// A lock in shared memory is taken and released by atomics, so the accesses that it guards are
// ordered.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned lock;
  __shared__ unsigned total;
  if (threadIdx.x == 0) lock = total = 0;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    total += in[threadIdx.x + 1];
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  out[threadIdx.x] = total;
}

// KERNEL control_lane_awaits_lane
// Each lane waits, by volatile loads, until the next lane of its warp has changed a flag. The last
// lane does not wait, and changes the flag of the lane before it.
// EXPECT nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in) + 64 + 64 * blockIdx.x;
  const unsigned lane = threadIdx.x;
  const unsigned before = lane + 64 + 64 * blockIdx.x;
  while (lane < 31 && *static_cast<volatile unsigned*>(flags + lane) == before) {
  }
  __threadfence();
  if (lane > 0) atomicExch(flags + lane - 1, 0u);
  out[blockIdx.x * 32 + lane] = lane;
}

// KERNEL control_lane_lock
// Every lane takes a lock in a loop that only the lock's owner leaves, in global and in shared
// memory. Lanes that wait give way to the owner, and the accesses that the lock guards are ordered.
// EXPECT nothing
// LAUNCH grid=2 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned lock;
  __shared__ unsigned total;
  unsigned* lock_of_all = const_cast<unsigned*>(in);
  unsigned* total_of_all = lock_of_all + 40;
  if (threadIdx.x == 0) lock = total = 0;
  __syncthreads();
  while (atomicExch(&lock, 1) == 1) {
  }
  __threadfence_block();
  total += 1;
  __threadfence_block();
  atomicExch(&lock, 0);
  while (atomicExch(lock_of_all, 1u) == 1) {
  }
  __threadfence();
  *total_of_all += 1;
  __threadfence();
  atomicExch(lock_of_all, 0u);
  __syncthreads();
  if (total != 64) __trap();
  out[blockIdx.x * 64 + threadIdx.x] = total;
}

// KERNEL control_lane_ticket
// The lane that draws the last ticket of its warp reads the words that the other lanes wrote before
// they drew theirs, in shared and in global memory. Then it resets the counter.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned values[32];
  __shared__ unsigned drawn;
  unsigned* next = const_cast<unsigned*>(in);
  if (threadIdx.x == 0) drawn = 0;
  __syncwarp();
  values[threadIdx.x] = in[threadIdx.x + 1];
  __threadfence_block();
  const bool last = atomicAdd(&drawn, 1) == 31;
  __threadfence_block();
  if (last) {
    drawn = 0;
    for (int i = 0; i < 32; ++i) out[i] = values[i];
  }
  __syncwarp();
  out[32 + threadIdx.x] = threadIdx.x;
  __threadfence();
  const bool last_of_global = atomicAdd(next, 1u) == 31;
  __threadfence();
  if (last_of_global) {
    *next = 0;
    for (int i = 0; i < 32; ++i) out[64 + i] = out[32 + i];
  }
}
