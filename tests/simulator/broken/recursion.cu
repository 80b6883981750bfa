// A function that calls itself.
// EXPECT unsupported

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);  // FAULT
}

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = fibonacci(in[threadIdx.x] % 8 + 2);
}
