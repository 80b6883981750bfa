#ifndef ANNULUS_PTX_TENSOR_COPY_CUH_
#define ANNULUS_PTX_TENSOR_COPY_CUH_

// Copies of boxes between tensors in global memory and shared memory, started by one thread (the
// tensor memory accelerator). A tensor map, 128 bytes that the host makes and passes as a kernel
// parameter, has the address and strides of the tensor and the size of a box. Coordinates count
// elements, the innermost dimension first. The part of a box that is outside the tensor is filled
// with zeros when it is loaded, and is not stored. PTX ISA 9.0, 9.7.9.27.

namespace annulus::ptx {

struct Box {
  int column, row, head, batch;
};

// cp.async.bulk.tensor.4d, global to shared: PTX 8.0, sm_90. Subtracts the bytes of the whole box,
// including those outside the tensor, from the bytes that `barrier` expects.
__device__ __forceinline__ void load_box(unsigned shared, const void* map, unsigned barrier,
                                         const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch)
      : "memory");
}

// Multicast: copies the box once into the shared memory of every CTA of a cluster whose bit in
// `ranks` is set, to the offset `shared` in each. In each CTA, the barrier at the offset `barrier`
// counts the bytes.
__device__ __forceinline__ void load_box_for(unsigned short ranks, unsigned shared, const void* map,
                                             unsigned barrier, const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch), "h"(ranks)
      : "memory");
}

// cp.async.bulk.tensor.4d, shared to global: PTX 8.0, sm_90. The copy joins the thread's next bulk
// group.
__device__ __forceinline__ void store_box(const void* map, unsigned shared, const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(map),
      "r"(shared), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch)
      : "memory");
}

// cp.async.bulk.commit_group and wait_group.read: PTX 8.0, sm_90. The second waits until the stores
// of this thread have read shared memory.
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// fence.proxy.async: PTX 8.0, sm_90. Makes the writes of this thread to shared memory visible to
// bulk copies and warpgroup products, if a barrier follows this fence and they follow the barrier.
__device__ __forceinline__ void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// prefetch.tensormap: PTX 8.0, sm_90.
__device__ __forceinline__ void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_TENSOR_COPY_CUH_
