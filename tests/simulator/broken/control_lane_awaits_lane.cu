// Each lane waits, by volatile loads, until the next lane of its warp has changed a flag. The last lane waits
// for nobody, and changes the flag of the lane before it.
// EXPECT nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in) + 64 + 64 * blockIdx.x;
  const unsigned lane = threadIdx.x;
  const unsigned before = lane + 64 + 64 * blockIdx.x;
  while (lane < 31 && *static_cast<volatile unsigned*>(flags + lane) == before) {
  }
  __threadfence();
  if (lane > 0) atomicExch(flags + lane - 1, 0u);
  out[blockIdx.x * 32 + lane] = lane;
}
