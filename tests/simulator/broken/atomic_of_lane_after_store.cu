// A lane sets the word that all lanes of its warp then count in, with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = in[1];  // FAULT
  out[threadIdx.x] = atomicAdd(&next, 1);  // FAULT
}
