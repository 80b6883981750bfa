#ifndef ANNULUS_PTX_ASYNC_COPY_CUH_
#define ANNULUS_PTX_ASYNC_COPY_CUH_

// Asynchronous copies from global to shared memory. When a thread commits, its copies form a group.
// A wait names the number of youngest groups that may still be under way. It covers only the
// thread's own copies, so a barrier must follow before other threads read them.

namespace annulus::ptx {

// cp.async: PTX 7.0, sm_80. Copies `bytes` (0 to 16) to the 16-byte slot at `shared` and zero-fills
// the rest of it; with 0 nothing is read, but `global` must still be a valid aligned address.
__device__ __forceinline__ void copy_async_16(unsigned shared, const void* global, unsigned bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(shared), "l"(global), "r"(bytes)
               : "memory");
}

// Copies 16 bytes from and to the addresses plus kGlobal and kShared bytes, which become part of
// the instruction. If `exists` is false, nothing is read and the slot is zero.
template <int kShared, int kGlobal>
__device__ __forceinline__ void copy_async_16_at(unsigned shared, const void* global, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0 + %3], [%1 + %4], 16, %2;"
               :
               : "r"(shared), "l"(global), "r"(exists ? 16 : 0), "n"(kShared), "n"(kGlobal)
               : "memory");
}

// cp.async.commit_group: PTX 7.0, sm_80. An empty group counts as a group.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// cp.async.wait_group: PTX 7.0, sm_80. Waits until at most kPending youngest groups are pending.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_ASYNC_COPY_CUH_
