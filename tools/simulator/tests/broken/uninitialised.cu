// Reads of memory and of registers that were never written.

// KERNEL uninitialised_global
// The kernel adds to the output, which was never cleared.
// EXPECT uninitialised read
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] += in[threadIdx.x];             // FAULT
}

// KERNEL uninitialised_local
// A thread reads an element of its array that no round of the loop wrote.
// EXPECT uninitialised read
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned own[16];
#pragma unroll 1
  for (unsigned i = 0; i < 8; ++i) own[in[i] % 16] = i;
  out[threadIdx.x] = own[in[threadIdx.x] % 16];   // FAULT
}

// KERNEL uninitialised_shared
// Half of a tile is never written.
// EXPECT uninitialised read
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[64];
  if (threadIdx.x < 32) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];       // FAULT
}

// KERNEL undefined_register_shuffled
// Lanes past the end pass a value that was never written to other lanes, which drop it.
// EXPECT uninitialised read
// PROVEN nothing
// LAUNCH block=32

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value;
  if (threadIdx.x < 20) value = in[threadIdx.x];
  const unsigned next = __shfl_down_sync(0xffffffff, value, 1);  // FAULT
  if (threadIdx.x < 19) out[threadIdx.x] = next;
}

// KERNEL undefined_register_stored
// Lanes past the end store a value that was never written, like the other lanes.
// EXPECT uninitialised read
// PROVEN nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned values[64];
  unsigned value;
  if (threadIdx.x < 40) value = in[threadIdx.x];
  values[threadIdx.x] = value;  // FAULT
  __syncthreads();
  if (threadIdx.x < 40) out[threadIdx.x] = values[39 - threadIdx.x];
}

// KERNEL struct_read_whole
// A whole struct is loaded. One of its members was never written and is not used.
// EXPECT uninitialised read
// PROVEN nothing
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ uint4 room[32];
  room[threadIdx.x].x = in[threadIdx.x];
  room[threadIdx.x].z = 1;
  unsigned x, y, z, w;
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&room[threadIdx.x]));
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "r"(place)  // FAULT
               : "memory");
  out[threadIdx.x] = x + z;
}

// KERNEL matrix_of_unwritten_rows
// Rows of a tile that were never written are loaded as a matrix, and the results of these rows are
// not used. FlashAttention-2 does so for rows past the end of the sequence.
// EXPECT uninitialised read
// PROVEN nothing
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[8 * 4];
  if (threadIdx.x < 16) tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  u32 word;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(word)
               : "r"(shared_address(tile + threadIdx.x % 8 * 4)));  // FAULT
  out[threadIdx.x] = threadIdx.x < 16 ? word : 0;
}

// KERNEL control_used_bytes
// NVRTC joins the loads into two loads of 16 bytes. The second one extends past the end of the
// memory, and a pragma states which bytes are used.
// EXPECT nothing
// LAUNCH in=28
extern "C" __global__ void broken(const float* in, float* out) {
  const float last = in[6];
  const float4 four = *reinterpret_cast<const float4*>(in);
  const float2 two = *reinterpret_cast<const float2*>(in + 4);
  __shared__ float4 room[2];
  if (threadIdx.x == 0) {
    room[0].x = four.x;
    room[0].z = four.z;
  }
  __syncthreads();
  const float3 part = {room[0].x, 0, room[0].z};
  out[threadIdx.x] = four.x + four.y + four.z + four.w + two.x + two.y + last + part.x + part.z;
}
