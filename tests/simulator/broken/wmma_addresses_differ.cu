// The lanes give wmma.load different addresses, as ldmatrix takes them.
// EXPECT invalid operand
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%0, %1, %2, %3}, [%4];"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + 8 * threadIdx.x));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}
