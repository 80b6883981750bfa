// A warp loads a matrix that its lanes have just written, with no barrier in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ __align__(32) unsigned tile[128];
  for (unsigned i = threadIdx.x; i < 128; i += 32) tile[i] = in[i];
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4];"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address) : "memory");   // FAULT
  out[threadIdx.x] = a + b + c + d;
}
