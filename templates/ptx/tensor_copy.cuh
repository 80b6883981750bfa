#ifndef ANNULUS_PTX_TENSOR_COPY_CUH_
#define ANNULUS_PTX_TENSOR_COPY_CUH_

// Copies of boxes between tensors in global memory and shared memory, by one thread for all (the
// tensor memory accelerator). A tensor map, 128 bytes that the host makes and a parameter of the
// kernel holds, says where the tensor lies and how large a box is; coordinates count elements, the
// innermost dimension first. What of a box lies outside the tensor is filled with zeros or not
// stored. PTX ISA 9.0, 9.7.9.27.

namespace annulus::ptx {

struct Box {
  int column, row, head, batch;
};

// cp.async.bulk.tensor.4d, global to shared: PTX 8.0, sm_90. Counts the whole box down from the
// bytes that `barrier` waits for.
__device__ __forceinline__ void load_box(unsigned shared, const void* map, unsigned barrier,
                                         const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch)
      : "memory");
}

// The same into the shared memory of all CTAs of a cluster whose bits are in `ranks`: to where
// `shared` lies in each, counted down at where `barrier` lies in each.
__device__ __forceinline__ void load_box_for(unsigned short ranks, unsigned shared, const void* map,
                                             unsigned barrier, const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch), "h"(ranks)
      : "memory");
}

// cp.async.bulk.tensor.4d, shared to global: PTX 8.0, sm_90. Joins the thread's next group.
__device__ __forceinline__ void store_box(const void* map, unsigned shared, const Box& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(map),
      "r"(shared), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.batch)
      : "memory");
}

// cp.async.bulk.commit_group and wait_group.read: PTX 8.0, sm_90. Waits until the thread's stores
// have read shared memory.
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// fence.proxy.async: PTX 8.0, sm_90. What this thread wrote to shared memory is seen by the copies
// and products that come after a barrier behind it.
__device__ __forceinline__ void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// prefetch.tensormap: PTX 8.0, sm_90.
__device__ __forceinline__ void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_TENSOR_COPY_CUH_
