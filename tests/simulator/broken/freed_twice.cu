// A kernel frees what another thread has freed already.
// EXPECT invalid operand
// LAUNCH block=32

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned* shared;
  if (threadIdx.x == 0) shared = static_cast<unsigned*>(malloc(64));
  __syncwarp();
  if (threadIdx.x < 2) free(shared);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
