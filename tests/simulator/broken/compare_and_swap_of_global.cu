// The same loop between blocks: each begins with an ordinary load of what others change.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=4 block=64

extern "C" __global__ void broken(unsigned* in, unsigned* out) {
  const unsigned mine = in[1 + blockIdx.x * 64 + threadIdx.x];
  unsigned old = in[0];  // FAULT
  unsigned assumed;
  do {
    assumed = old;
    old = atomicCAS(in, assumed, assumed + mine);  // FAULT
  } while (assumed != old);
  out[blockIdx.x * 64 + threadIdx.x] = mine;
}
