// Blocks that meet in global memory.

// KERNEL global_atomic_read_by_other_lane
// Lanes count in global memory by atomics, and a lane of the same warp reads the count with nothing
// in between.
// EXPECT global memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counts = const_cast<unsigned*>(in);
  atomicAdd(&counts[threadIdx.x % 4], 1u);  // FAULT
  if (threadIdx.x == 0) out[0] = counts[3];  // FAULT
}

// KERNEL global_atomics_of_the_block
// Blocks share words by atomics whose scope is the block.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  atomicAdd_block(const_cast<unsigned*>(in), 1u);  // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = 0;
}

// KERNEL global_flag_without_fence
// There is no fence between the data and the flag.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = flag + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;  // FAULT
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 7u);
  } else {
    while (atomicAdd(flag, 0u) != 7) {
    }
    __threadfence();
    out[threadIdx.x] = data[threadIdx.x];  // FAULT
  }
}

// KERNEL global_flag_without_second_fence
// The writer has its fence, the reader has none.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = flag + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;  // FAULT
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 7u);
  } else {
    while (atomicAdd(flag, 0u) != 7) {
    }
    out[threadIdx.x] = data[threadIdx.x];  // FAULT
  }
}

// KERNEL global_half_word_race
// Accesses to neighbouring halves are correct, but two blocks share a half.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned*, unsigned* out) {
  unsigned short* halves = reinterpret_cast<unsigned short*>(out);
  halves[blockIdx.x * 31 + threadIdx.x] = 1;  // FAULT
}

// KERNEL global_last_block_without_barrier
// The last block adds up the words of the other blocks, but the ticket is drawn before all warps
// have written.
// EXPECT global memory race
// LAUNCH grid=6 block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  partial[blockIdx.x * 128 + threadIdx.x] = 1;  // FAULT
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 128 + threadIdx.x];  // FAULT
  out[threadIdx.x] = sum;
}

// KERNEL global_last_block_without_fence
// The last block adds up the words of the other blocks, without the fence before the ticket.
// EXPECT global memory race
// LAUNCH grid=6 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = blockIdx.x;  // FAULT
    last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];  // FAULT
  out[threadIdx.x] = sum;
}

// KERNEL global_mbarrier_of_the_cta
// A CTA writes global memory and arrives at the mbarrier of another CTA. The other CTA reads the
// words after a wait that has only the scope of its own CTA.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=2 block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  hand_over<wait>(const_cast<u32*>(in), out);  // FAULT
}

// KERNEL global_narrow_write_of_wide_read
// A block writes two bytes of a range that others read in pieces of 16.
// EXPECT global memory race
// LAUNCH grid=3 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const uint4 wide = reinterpret_cast<const uint4*>(in)[threadIdx.x];  // FAULT
  reinterpret_cast<uint4*>(out)[blockIdx.x * 32 + threadIdx.x] = wide;  // FAULT
  if (blockIdx.x == 1 && threadIdx.x == 9) {
    reinterpret_cast<unsigned short*>(const_cast<unsigned*>(in))[101] = 3;  // FAULT
  }
}

// KERNEL global_overwrite_of_input
// A block overwrites words that all other blocks read.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];             // FAULT
  if (blockIdx.x == 2) const_cast<unsigned*>(in)[threadIdx.x] = 1;  // FAULT
}

// KERNEL global_plain_counter
// Blocks increment a counter without an atomic.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) const_cast<unsigned*>(in)[3] += 1;  // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = 0;
}

// KERNEL global_read_of_counter
// A block reads by a plain load a word that other blocks update by atomics.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counter = const_cast<unsigned*>(in);
  if (threadIdx.x == 0) atomicAdd(counter, 1u);   // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = *counter;  // FAULT
}

// KERNEL global_read_without_sync
// A block reads words that another block has written, with nothing in between.
// EXPECT global memory race
// LAUNCH grid=3 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* data = const_cast<unsigned*>(in);
  data[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;  // FAULT
  __syncthreads();
  const unsigned next = (blockIdx.x + 1) % gridDim.x;
  out[blockIdx.x * 64 + threadIdx.x] = data[next * 64 + threadIdx.x];  // FAULT
}

// KERNEL global_store_published_unfinished
// The last block reads what both blocks have stored with bulk copies. Each thread has waited only
// until the source was read.
// EXPECT global memory race | access to bytes in flight
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ bool last;
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    commit_stores();
    wait_stores_read<0>();
    fence_async_global();
    __threadfence();
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[128 + threadIdx.x] = out[threadIdx.x] + out[64 + threadIdx.x];  // FAULT
  if (last && threadIdx.x == 0) ticket = 0;
  if (threadIdx.x == 0) wait_stores<0>();
}

// KERNEL global_store_published_unwaited
// The last block reads what both blocks store with bulk copies. No thread has waited for them.
// EXPECT global memory race | access to bytes in flight
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ bool last;
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    commit_stores();

    fence_async_global();
    __threadfence();
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[128 + threadIdx.x] = out[threadIdx.x] + out[64 + threadIdx.x];  // FAULT
  if (last && threadIdx.x == 0) ticket = 0;
  if (threadIdx.x == 0) wait_stores<0>();
}

// KERNEL global_two_writers
// Two blocks write the same value to one element, which is still a race.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 5) out[7] = in[1];  // FAULT
}

// KERNEL global_wrong_flag
// A block waits for the flag of one neighbour and reads the data of another.
// EXPECT global memory race
// LAUNCH grid=3 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in);
  unsigned* data = flags + 64;
  if (blockIdx.x < 2) {
    data[blockIdx.x * 32 + threadIdx.x] = 5;  // FAULT
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flags + 8 + blockIdx.x, 100u);
  } else {
    while (atomicAdd(flags + 8, 0u) != 100) {
    }
    __threadfence();
    out[threadIdx.x] = data[32 + threadIdx.x];  // FAULT
  }
}

// KERNEL control_global_atomics
// Blocks count together by atomics, and none reads the count before the end.
// EXPECT nothing
// LAUNCH grid=8 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counters = const_cast<unsigned*>(in);
  atomicAdd(counters + (threadIdx.x & 7), 1u);
  out[blockIdx.x * 64 + threadIdx.x] = atomicMax(counters + 8, threadIdx.x) >= 0;
}

// KERNEL control_global_lock
// A lock is taken and released by atomics between fences, so the accesses that it guards are
// ordered.
// EXPECT nothing
// LAUNCH grid=5 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* lock = const_cast<unsigned*>(in);
  unsigned* total = lock + 40;
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0u, 1u) != 0) {
    }
    __threadfence();
    *total += blockIdx.x;
    __threadfence();
    atomicExch(lock, 0u);
  }
  out[blockIdx.x * 64 + threadIdx.x] = 1;
}

// KERNEL control_global_mbarrier
// A CTA reads global memory that another CTA wrote before it arrived, after a wait with the scope
// of the cluster.
// EXPECT nothing
// LAUNCH grid=2 block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  hand_over<wait_cluster>(const_cast<u32*>(in), out);
}

// KERNEL control_global_neighbours
// Blocks write neighbouring bytes and halves, and read bytes next to those that others write.
// EXPECT nothing
// LAUNCH grid=4 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned char* bytes = reinterpret_cast<unsigned char*>(const_cast<unsigned*>(in));
  unsigned short* halves = reinterpret_cast<unsigned short*>(out);
  const unsigned i = threadIdx.x * 4 + blockIdx.x;
  bytes[2 * i] = bytes[2 * i + 1];
  halves[i] = bytes[2 * i];
  if (blockIdx.x == 0) reinterpret_cast<uint4*>(out + 2048)[threadIdx.x] = uint4{1, 2, 3, 4};
  if (blockIdx.x == 1) out[2048 + 4 * 64 + threadIdx.x] = 1;
}

// KERNEL control_global_store_published
// The last block reads what both blocks have stored with bulk copies, after waits and fences.
// EXPECT nothing
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ bool last;
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    commit_stores();
    wait_stores<0>();
    fence_async_global();
    __threadfence();
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[128 + threadIdx.x] = out[threadIdx.x] + out[64 + threadIdx.x];
  if (last && threadIdx.x == 0) ticket = 0;
  if (threadIdx.x == 0) wait_stores<0>();
}

// KERNEL control_last_block
// The last block adds up the words of the other blocks, with a fence before the ticket and one
// after it.
// EXPECT nothing
// LAUNCH grid=6 block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  partial[blockIdx.x * 128 + threadIdx.x] = 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 128 + threadIdx.x];
  out[threadIdx.x] = sum;
  if (threadIdx.x == 0) *tickets = 0;
}

// KERNEL control_last_block_reset
// Every warp executes a fence, one thread draws the ticket after a barrier, and the last block
// resets the tickets by a plain write.
// EXPECT nothing
// LAUNCH grid=5 block=96
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  partial[blockIdx.x * 96 + threadIdx.x] = blockIdx.x;
  if (threadIdx.x >= 32) __threadfence();
  if (threadIdx.x < 32) __threadfence();
  __syncthreads();
  if (threadIdx.x == 64) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 64) *tickets = 0;
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 96 + threadIdx.x];
  out[threadIdx.x] = sum;
}

// KERNEL control_release_acquire
// Each block passes a value to the next one: st.release and ld.acquire.
// EXPECT nothing
// LAUNCH grid=5 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in);
  unsigned* data = flags + 64;
  const unsigned block = blockIdx.x;
  if (block > 0) {
    unsigned seen = 0;
    while (seen != 1000 + block) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(flags + block)
                   : "memory");
    }
  }
  data[threadIdx.x] += 1;  // the word that all earlier blocks have written, one after another
  out[block * 64 + threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + block + 1), "r"(1001 + block)
                 : "memory");
  }
}

// KERNEL control_grid_of_readers
// All blocks read all of the input. Each block writes and reads only its own bytes of the output.
// EXPECT nothing
// LAUNCH grid=7 block=96
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < 1024; i += 96) sum += in[i];
  unsigned* own = out + blockIdx.x * 96;
  own[threadIdx.x] = sum;
  __syncthreads();
  const unsigned other = own[95 - threadIdx.x];
  __syncthreads();
  own[threadIdx.x] = other;
}

// KERNEL control_volatile_flag
// A volatile flag between two fences orders two blocks.
// EXPECT nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  volatile unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = const_cast<unsigned*>(in) + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 7;
  } else {
    while (*flag != 7) {
    }
    __threadfence();
    out[threadIdx.x] = data[threadIdx.x];
  }
}
