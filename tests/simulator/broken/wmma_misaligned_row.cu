// The rows of a matrix are 5 words apart, and so do not start at multiples of 16 bytes.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k8.tf32 {%0, %1, %2, %3}, [%4], 5;"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}
