// A warp tells another by a flag that it writes with a plain store.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[1] = 1;
  __syncthreads();
  if (threadIdx.x == 0) out[1] = 2 + in[0];  // FAULT
  if (threadIdx.x == 32) out[2] = *static_cast<volatile unsigned*>(out + 1);  // FAULT
}
