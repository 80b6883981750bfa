// NVRTC joins the loads to two of 16 bytes, of which the second ends behind the memory, and says in
// a pragma which bytes are used.
// EXPECT nothing
// LAUNCH in=28
extern "C" __global__ void broken(const float* in, float* out) {
  const float last = in[6];
  const float4 four = *reinterpret_cast<const float4*>(in);
  const float2 two = *reinterpret_cast<const float2*>(in + 4);
  __shared__ float4 room[2];
  if (threadIdx.x == 0) {
    room[0].x = four.x;
    room[0].z = four.z;
  }
  __syncthreads();
  const float3 part = {room[0].x, 0, room[0].z};
  out[threadIdx.x] = four.x + four.y + four.z + four.w + two.x + two.y + last + part.x + part.z;
}
