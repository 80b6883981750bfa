// A fragment of f16 has 32 bytes, of which the first row of the matrix is no multiple.
// EXPECT misaligned address
// PROVEN nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned sum;
  asm volatile("{ .reg .b32 a<8>;\n"                                                         // FAULT
               "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%1];\n"  // FAULT
               "add.u32 %0, a0, a7; }" : "=r"(sum) : "l"(in + 4));                         // FAULT
  out[threadIdx.x] = sum;
}
