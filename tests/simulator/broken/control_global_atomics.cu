// Blocks count together by atomics, and none reads before the end.
// EXPECT nothing
// LAUNCH grid=8 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counters = const_cast<unsigned*>(in);
  atomicAdd(counters + (threadIdx.x & 7), 1u);
  out[blockIdx.x * 64 + threadIdx.x] = atomicMax(counters + 8, threadIdx.x) >= 0;
}
