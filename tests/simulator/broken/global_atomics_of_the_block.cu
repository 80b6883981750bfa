// Blocks share words by atomics whose scope is the block.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  atomicAdd_block(const_cast<unsigned*>(in), 1u);  // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = 0;
}
