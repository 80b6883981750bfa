// The count of a barrier is no multiple of the warp size.
// EXPECT invalid operand | barrier misuse
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned count = 48 + (in[0] & 0);
  asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");   // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
