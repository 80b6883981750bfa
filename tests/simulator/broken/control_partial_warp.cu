// In a block of 48 threads the second warp is half full, and lanes exit early. A member mask may
// name lanes that have no thread or have exited; only the others are waited for.
// EXPECT nothing
// LAUNCH block=48
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[48];
  unsigned value = in[threadIdx.x];
  tile[threadIdx.x] = value;
  __syncwarp();
  value += tile[threadIdx.x ^ 1];
  value += __shfl_xor_sync(0xffffffff, value, 8);
  value += __popc(__ballot_sync(0xffffffff, value & 1));
  if (__all_sync(0xffffffff, value < 1000)) value += 3;
  out[threadIdx.x] = value;
  if ((threadIdx.x & 3) == 3) return;
  value += __reduce_add_sync(0xffffffff, value) + __match_any_sync(0xffffffff, value & 1);
  __syncthreads();
  out[threadIdx.x] = value + __popc(__activemask());
}
