// The last row of a matrix lies behind the end of its allocation.
// EXPECT out of bounds
// LAUNCH block=32 in=512
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%0, %1, %2, %3}, [%4], 12;"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}
