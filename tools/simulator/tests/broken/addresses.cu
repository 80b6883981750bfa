// Addresses beyond memory, and misaligned addresses.

// KERNEL missing_row_clamp
// The last tile has fewer rows than threads, and no condition keeps the other threads from reading
// past the end.
// EXPECT out of bounds
// LAUNCH grid=3 block=128 in=1200
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  out[row] = in[row] + 1;                          // FAULT
}

// KERNEL last_byte
// The kernel reads the last byte of the address space, after which addresses wrap around to 0.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const auto* last = reinterpret_cast<const volatile unsigned char*>(~0ull);
  out[threadIdx.x] = in[threadIdx.x] + *last;  // FAULT
}

// KERNEL null_pointer
// The kernel uses a pointer that was never set.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const unsigned* none = reinterpret_cast<const unsigned*>(static_cast<unsigned long long>(in[0]));
  out[threadIdx.x] = none[threadIdx.x];            // FAULT
}

// KERNEL shared_past_end
// An index is beyond the block's shared memory.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x + in[1]] = threadIdx.x;   // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

// KERNEL dynamic_shared_too_small
// The launch gives less dynamic shared memory than the kernel uses.
// EXPECT out of bounds
// LAUNCH block=64 shared=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  extern __shared__ unsigned tile[];
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

// KERNEL local_past_end
// A computed index (0 ... 31) is beyond the array of the thread.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned own[16];
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) own[i] = in[i];
  out[threadIdx.x] = own[in[threadIdx.x]];   // FAULT
}

// KERNEL global_write_past_end
// One element too many is written.
// EXPECT out of bounds
// LAUNCH block=32 out=124
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x];              // FAULT
}

// KERNEL use_after_free
// The input was freed before the launch.
// EXPECT out of bounds
// LAUNCH block=32 freed=1
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x];              // FAULT
}

// KERNEL freed_twice
// A kernel frees memory that another thread has freed already.
// EXPECT invalid operand
// LAUNCH block=32

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned* shared;
  if (threadIdx.x == 0) shared = static_cast<unsigned*>(malloc(64));
  __syncwarp();
  if (threadIdx.x < 2) free(shared);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL misaligned_shared
// An access to shared memory is not aligned to its size.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  tile[threadIdx.x + 32] = in[threadIdx.x];
  __syncthreads();
  uint2 two = *reinterpret_cast<const uint2*>(tile + threadIdx.x);  // FAULT
  out[threadIdx.x] = two.x + two.y;
}

// KERNEL misaligned_vector
// A 16-byte load has an address that is only a multiple of 4.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  uint4 four = *reinterpret_cast<const uint4*>(in + threadIdx.x);   // FAULT
  out[threadIdx.x] = four.x + four.w;
}

// KERNEL misaligned_copy
// cp.async copies 16 bytes from an address that is only a multiple of 8.
// EXPECT misaligned address
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

extern "C" __global__ void broken(const char* in, uint4* out) {
  __shared__ uint4 stage[32];
  copy16(&stage[threadIdx.x], in + threadIdx.x * 16 + 8);   // FAULT inlined
  commit();
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x];
}

// KERNEL ldmatrix_misaligned_row
// A row of ldmatrix does not start at a multiple of 16 bytes.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned tile[160];
  for (unsigned i = threadIdx.x; i < 160; i += 32) tile[i] = in[i];
  __syncthreads();
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x * 5));
  unsigned a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"     // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address) : "memory");   // FAULT
  out[threadIdx.x] = a + b + c + d;
}

// KERNEL stmatrix_misaligned
// A row of stmatrix does not start at a multiple of 16 bytes.
// EXPECT misaligned address
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 rows[64];
  const u32 at = threadIdx.x % 8 * 20;
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(shared_address(rows) + at), "r"(in[threadIdx.x]) : "memory");  // FAULT
  __syncwarp();
  out[threadIdx.x] = rows[threadIdx.x % 8 * 5];
}

// KERNEL control_clamped_rows
// A correct tail: rows beyond the end are copied with no source bytes, which reads nothing, and the
// addresses of predicated-off instructions do not matter.
// EXPECT nothing
// LAUNCH block=128 in=1200
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[512];
  for (unsigned row = threadIdx.x; row < 512; row += 128) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile + row));
    unsigned bytes = row < 300 ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(in + row * 100000ull * (row >= 300) + row), "r"(bytes) : "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  unsigned sum = 0;
  for (unsigned row = 0; row < 512; ++row) sum += tile[row];
  if (threadIdx.x + 200 < 300) sum += in[threadIdx.x + 200];
  out[threadIdx.x] = sum;
}
