// A shuffle brings the lanes together, but does not order their memory accesses.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[32];
  tile[threadIdx.x] = 0;
  __syncwarp();
  tile[threadIdx.x] = in[threadIdx.x] + 1;         // FAULT
  unsigned next = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
  out[threadIdx.x] = tile[next];                   // FAULT
}
