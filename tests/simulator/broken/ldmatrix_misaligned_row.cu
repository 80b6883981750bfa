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
