#ifndef ANNULUS_PTX_MEMORY_CUH_
#define ANNULUS_PTX_MEMORY_CUH_

// Loads and stores that name their memory space, so that no generic address is needed, which costs
// compile time and a look-up in the hardware. Shared addresses are 32-bit offsets.

namespace annulus::ptx {

struct alignas(16) Words4 {
  unsigned x, y, z, w;
};

// cvta.to.shared: PTX 2.0, sm_20.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// mad.wide.s32: PTX 1.0, any architecture. Returns address + count * bytes in one instruction; the
// compiler would use several for the same expression.
__device__ __forceinline__ const char* advanced(const char* address, int count, int bytes) {
  const char* result;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(count), "r"(bytes), "l"(address));
  return result;
}

// st.shared.b32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_shared(unsigned address, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// mapa and st.async: PTX 8.1, sm_90. Stores a word at the offset `address` in the CTA of rank
// `rank` of the cluster, at some later moment, and then completes its four bytes at that CTA's
// mbarrier at the offset `barrier`. A thread that has waited for the barrier sees the word.
__device__ __forceinline__ void store_at(unsigned address, unsigned barrier, unsigned rank,
                                         unsigned value) {
  asm volatile(
      "{\n.reg .b32 place, full;\n"
      "mapa.shared::cluster.u32 place, %0, %2;\n"
      "mapa.shared::cluster.u32 full, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [place], %3, [full];\n}" ::
          "r"(address),
      "r"(barrier), "r"(rank), "r"(value)
      : "memory");
}

// ld.shared.b32: PTX 1.0, any architecture.
__device__ __forceinline__ unsigned load_shared(unsigned address) {
  unsigned value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// ld.shared.v4.b32: PTX 1.0, any architecture.
__device__ __forceinline__ Words4 load_shared_16(unsigned address) {
  Words4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// st.shared.v4.b32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_shared_16(unsigned address, const Words4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// st.shared.v2.f32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_shared_8(unsigned address, float low, float high) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(low), "f"(high) : "memory");
}

// ld.global.v4.b32: PTX 1.0, any architecture.
__device__ __forceinline__ Words4 load_global_16(const void* address) {
  Words4 v;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address)
               : "memory");
  return v;
}

// st.global.v2.b32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_global_8(void* address, unsigned x, unsigned y) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(x), "r"(y) : "memory");
}

// st.global.v4.b32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_global_16(void* address, const Words4& v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// ld.global.v2.f32: PTX 1.0, any architecture.
__device__ __forceinline__ void load_global_8(float& low, float& high, const void* address) {
  asm volatile("ld.global.v2.f32 {%0, %1}, [%2];"
               : "=f"(low), "=f"(high)
               : "l"(address)
               : "memory");
}

// red.relaxed.gpu.global.min.u32: PTX 6.0, any architecture. The word becomes the minimum of both.
__device__ __forceinline__ void reduce_min(unsigned* address, unsigned value) {
  asm volatile("red.relaxed.gpu.global.min.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// st.global.v2.f32: PTX 1.0, any architecture.
__device__ __forceinline__ void store_global_8(void* address, float low, float high) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(address), "f"(low), "f"(high) : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_MEMORY_CUH_
