// Threads of one block that meet in global memory.

// KERNEL block_flag_written_plainly
// A warp signals another warp by a flag that it writes with a plain store.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[1] = 1;
  __syncthreads();
  if (threadIdx.x == 0) out[1] = 2 + in[0];  // FAULT
  if (threadIdx.x == 32) out[2] = *static_cast<volatile unsigned*>(out + 1);  // FAULT
}

// KERNEL block_lanes_exchange
// Lanes of a warp exchange words through global memory with no __syncwarp.
// EXPECT global memory race

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;

  out[32 + threadIdx.x] = out[threadIdx.x ^ 1];  // FAULT
}

// KERNEL block_lanes_scatter
// Lanes store different words at one place. It is undefined which word remains, and some programs
// do not depend on it.
// EXPECT global memory race
// PROVEN nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x / 2] = in[threadIdx.x] + 1;  // FAULT
}

// KERNEL block_named_barrier_of_others
// Three of four warps meet at a barrier, and the fourth reads the words that they wrote.
// EXPECT global memory race | uninitialised read
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[256 + threadIdx.x] = out[95 - threadIdx.x];
  } else {
    out[512 + threadIdx.x] = out[threadIdx.x - 96];  // FAULT
  }
}

// KERNEL block_one_buffer
// Steps read and write one buffer in global memory, with one barrier for each step: a warp
// overwrites words that a slow warp still reads.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  for (unsigned step = 0; step < 3; ++step) {
    __syncthreads();
    const unsigned other = out[63 - threadIdx.x];  // FAULT
    __syncwarp();
    out[threadIdx.x] = other + step + 1;  // FAULT
  }
}

// KERNEL block_reads_neighbour
// A warp reads global memory that the other warp wrote, with no barrier in between.
// EXPECT global memory race | uninitialised read
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;                      // FAULT

  out[64 + threadIdx.x] = out[(threadIdx.x + 32) % 64];        // FAULT
}

// KERNEL block_shift_in_place
// Words move down by one in place. A warp may overwrite a word before the previous warp has read
// it.
// EXPECT global memory race
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) out[128] = 7;
  __syncthreads();
  const unsigned next = out[threadIdx.x + 1];  // FAULT
  __syncwarp();
  out[threadIdx.x] = next;  // FAULT
}

// KERNEL block_sum_not_awaited
// All threads add to a word, and one reads the sum before the others have added.
// EXPECT global memory race
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[0] = 1;
  __syncthreads();
  atomicAdd(&out[0], in[threadIdx.x] + 1);  // FAULT

  if (threadIdx.x == 0) out[1] = out[0];  // FAULT
}

// KERNEL block_sum_not_zeroed_first
// One thread sets the first value of a sum while others already add to it.
// EXPECT global memory race | uninitialised read
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[0] = 1;  // FAULT

  atomicAdd(&out[0], in[threadIdx.x] + 1);  // FAULT
}

// KERNEL block_two_writers
// Two warps store different words at the same places.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x % 32] = in[threadIdx.x] + 1;  // FAULT
}

// KERNEL block_volatile_flag_without_fence
// A warp signals another by a volatile flag that words in global memory are ready. The other warp
// reads them with no fence after the flag.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  volatile unsigned* const flag = out + 128;
  if (threadIdx.x == 0) *flag = 1;
  __syncthreads();
  if (threadIdx.x < 32) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 2;
  } else {
    while (*flag != 2) {
    }
    __syncwarp();
    out[threadIdx.x] = out[threadIdx.x - 32];  // FAULT
  }
}

// KERNEL control_block_lanes_exchange
// Lanes of a warp exchange words through global memory, with __syncwarp in between.
// EXPECT nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncwarp();
  out[32 + threadIdx.x] = out[threadIdx.x ^ 1];
}

// KERNEL control_block_lanes_scatter
// Lanes store the same word at one place.
// EXPECT nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x / 2] = in[threadIdx.x / 2] + 1;
}

// KERNEL control_block_named_barrier
// Three warps arrive. The fourth waits for them and reads the words that they wrote.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[512 + threadIdx.x] = out[threadIdx.x - 96];
  }
}

// KERNEL control_block_reads_neighbour
// A warp reads global memory that the other warp wrote, after a barrier.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  out[64 + threadIdx.x] = out[(threadIdx.x + 32) % 64];
}

// KERNEL control_block_shift_in_place
// Words move down by one in place: all are read, and then all are written.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) out[128] = 7;
  __syncthreads();
  const unsigned next = out[threadIdx.x + 1];
  __syncthreads();
  out[threadIdx.x] = next;
}

// KERNEL control_block_sum_awaited
// All threads add to a word, and one reads the sum after a barrier.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[0] = 1;
  __syncthreads();
  atomicAdd(&out[0], in[threadIdx.x] + 1);
  __syncthreads();
  if (threadIdx.x == 0) out[1] = out[0];
}

// KERNEL control_block_two_buffers
// Steps between two buffers in global memory, with a barrier for each step.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  for (unsigned step = 0; step < 3; ++step) {
    __syncthreads();
    const unsigned other = out[step % 2 * 64 + 63 - threadIdx.x];
    out[(step + 1) % 2 * 64 + threadIdx.x] = other + step + 1;
  }
}

// KERNEL control_block_two_writers
// Two warps store at the same places, one after the other.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 32) out[threadIdx.x % 32] = in[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x >= 32) out[threadIdx.x % 32] = in[threadIdx.x] + 1;
}

// KERNEL control_block_volatile_flag
// A warp signals another by a volatile flag that words in global memory are ready.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  volatile unsigned* const flag = out + 128;
  if (threadIdx.x == 0) *flag = 1;
  __syncthreads();
  if (threadIdx.x < 32) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 2;
  } else {
    while (*flag != 2) {
    }
    __threadfence_block();
    out[threadIdx.x] = out[threadIdx.x - 32];
  }
}
