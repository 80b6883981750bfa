// Steps that read and write one buffer in global memory with one barrier each: a warp overwrites what a slow
// one still reads.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  for (unsigned step = 0; step < 3; ++step) {
    __syncthreads();
    const unsigned other = out[63 - threadIdx.x];  // FAULT
    __syncwarp();
    out[threadIdx.x] = other + step + 1;  // FAULT
  }
}
