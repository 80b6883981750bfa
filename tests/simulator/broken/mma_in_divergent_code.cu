// A part of a warp executes mma.sync, which needs a whole warp.
// EXPECT divergent barrier | deadlock
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  unsigned a = in[threadIdx.x];
  if (a & 2) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"  // FAULT
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a));   // FAULT
    out[threadIdx.x] = d0 + d1 + d2 + d3;
  } else {
    __syncwarp();                                  // FAULT
    out[threadIdx.x] = a;
  }
}
