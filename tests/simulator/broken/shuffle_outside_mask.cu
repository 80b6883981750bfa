// Lanes call a shuffle whose member mask does not name them.
// EXPECT invalid operand
// FAST nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffff, in[threadIdx.x], 3);   // FAULT
}
