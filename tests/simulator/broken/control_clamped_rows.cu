// A tail that is handled right: rows beyond the end are copied with no source bytes, which reads
// nothing, and the addresses of predicated-off instructions do not matter.
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
