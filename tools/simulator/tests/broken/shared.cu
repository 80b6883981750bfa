// Threads of one block that meet in shared memory.

// KERNEL missing_sync_before_overwrite
// A tile is overwritten while another warp may still read it in the previous round.
// EXPECT shared memory race
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned turn = 0; turn < 4; ++turn) {
    tile[threadIdx.x] = in[threadIdx.x + turn];    // FAULT
    __syncthreads();
    sum += tile[threadIdx.x ^ 32];                 // FAULT
  }
  out[threadIdx.x] = sum;
}

// KERNEL missing_sync_before_read
// A tile is read before a barrier has ordered the read after the writes.
// EXPECT shared memory race
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  out[threadIdx.x] = tile[threadIdx.x ^ 64];       // FAULT
}

// KERNEL missing_syncwarp
// Lanes of one warp exchange data through shared memory with nothing in between. Nothing guarantees
// that they run in lockstep.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[32];
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  out[threadIdx.x] = tile[threadIdx.x ^ 1];        // FAULT
}

// KERNEL two_writers
// Two warps write different values to the same words.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x & 31] = in[threadIdx.x];        // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x & 31];
}

// KERNEL half_word_race
// The writers of a 16-bit element and of the whole word around it are not ordered.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  unsigned lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    reinterpret_cast<unsigned short*>(tile)[lane * 2 + 1] = in[lane];   // FAULT
  } else {
    tile[lane] = in[lane];                         // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = tile[lane];
}

// KERNEL branches_race
// Two halves of a warp, in different branches, write and read the same words.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[16];
  if (threadIdx.x < 16) tile[threadIdx.x] = 0;
  __syncwarp();
  if (in[threadIdx.x] < 16) {
    tile[threadIdx.x] = in[threadIdx.x] + 1;       // FAULT
  } else {
    out[threadIdx.x] = tile[threadIdx.x - 16];     // FAULT
  }
}

// KERNEL control_syncwarp
// Lanes of a warp exchange through shared memory with __syncwarp on both sides, and through
// shuffles, votes and matrices of the whole warp.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[64];
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    tile[threadIdx.x] = in[threadIdx.x + i];
    __syncwarp();
    sum += tile[threadIdx.x ^ (i + 1)];
    __syncwarp();
  }
  sum += __shfl_xor_sync(0xffffffff, sum, 16) + __ballot_sync(0xffffffff, sum & 1);
  out[threadIdx.x] = sum;
}

// KERNEL control_byte_neighbours
// Threads of different warps write neighbouring bytes and halves of one word, which is not a race.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned char bytes[128];
  __shared__ unsigned short halves[128];
  unsigned place = (threadIdx.x & 31) * 4 + threadIdx.x / 32;
  bytes[place] = in[threadIdx.x];
  halves[place] = in[threadIdx.x];
  unsigned own = bytes[place] + halves[place];
  __syncthreads();
  out[threadIdx.x] = own + bytes[threadIdx.x] + halves[127 - threadIdx.x];
}

// KERNEL control_private_places
// Every thread uses only its own element, so no barrier is needed, however often the thread uses
// it.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  for (unsigned i = 0; i < 4; ++i) {
    tile[threadIdx.x] = in[threadIdx.x + i];
    out[threadIdx.x + 128 * i] = tile[threadIdx.x];
  }
}

// KERNEL control_half_warp_exchange
// Half of a warp exchanges words through shared memory: __syncwarp for its lanes is enough.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[16];
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    tile[threadIdx.x] = value;
    __syncwarp(0x0000ffff);
    value = tile[threadIdx.x ^ 5];
    __syncwarp(0x0000ffff);
    tile[threadIdx.x] = value + 1;
    __syncwarp(0x0000ffff);
    value += tile[threadIdx.x ^ 3];
  }
  out[threadIdx.x] = value;
}
