// Two warps store tiles that overlap in a row, with no barrier in between.
// EXPECT global memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const unsigned warp = threadIdx.x / 32;
  const float x = in[warp + 1];
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1, %1, %1, %1, %1, %1, %1, %1}, 16;"  // FAULT
               : : "l"(out + 240 * warp), "f"(x) : "memory");                                // FAULT
}
