// Lanes of one warp exchange data through shared memory with nothing in between. Nothing guarantees
// that they run in lockstep.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[32];
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  out[threadIdx.x] = tile[threadIdx.x ^ 1];        // FAULT
}
