// A struct is loaded whole, of which nothing wrote one member, and nothing uses it.
// EXPECT uninitialised read
// PROVEN nothing
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ uint4 room[32];
  room[threadIdx.x].x = in[threadIdx.x];
  room[threadIdx.x].z = 1;
  unsigned x, y, z, w;
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&room[threadIdx.x]));
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "r"(place)  // FAULT
               : "memory");
  out[threadIdx.x] = x + z;
}
