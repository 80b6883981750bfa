// Four warps use a barrier for 96 threads. The fourth starts a new phase and waits for ever.
// EXPECT deadlock | barrier misuse
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  asm volatile("bar.sync 1, 96;" ::: "memory");    // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
