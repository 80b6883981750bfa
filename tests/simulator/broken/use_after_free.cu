// The input was freed before the launch.
// EXPECT out of bounds
// LAUNCH block=32 freed=1
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x];              // FAULT
}
