// Ends of kernels: a trap, an endless loop, a recursion.

// KERNEL trap
// A check in the kernel fails.
// EXPECT trap
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (in[threadIdx.x] == 7) __trap();              // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL endless_loop
// The kernel waits for a word that no thread changes.
// EXPECT timeout | deadlock
// LAUNCH block=32
// ANYLINE
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  while (*const_cast<const volatile unsigned*>(in) != 99) {
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL recursion
// A function that calls itself.
// EXPECT unsupported

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);  // FAULT
}

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = fibonacci(in[threadIdx.x] % 8 + 2);
}

// KERNEL control_recursion_not_reached
// A kernel that contains the call of a recursive function but does not reach it.
// EXPECT nothing

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = fibonacci(in[threadIdx.x] % 2);
}
