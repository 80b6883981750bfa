// Blocks hand a value on, each to the next: st.release and ld.acquire.
// EXPECT nothing
// LAUNCH grid=5 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in);
  unsigned* data = flags + 64;
  const unsigned block = blockIdx.x;
  if (block > 0) {
    unsigned seen = 0;
    while (seen != 1000 + block) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(flags + block)
                   : "memory");
    }
  }
  data[threadIdx.x] += 1;  // what all blocks before have written, one after the other
  out[block * 64 + threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + block + 1), "r"(1001 + block)
                 : "memory");
  }
}
