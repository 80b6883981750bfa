// Memory, copies and events of the simulated driver.

#include <doctest/doctest.h>

#include "on_device.h"

namespace annulus::simulator {
namespace {

TEST_CASE("memory: sizes, second frees and pointers into the middle") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  CUdeviceptr pointer = 0;
  CHECK(cuda.mem_alloc(&pointer, 0) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc(nullptr, 16) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc(&pointer, ~std::size_t{0}) == kCudaOutOfMemory);
  pointer = on.allocate(1000);
  CHECK(pointer % 512 == 0);
  // Large allocations have the alignment of large pages, whatever is allocated between them.
  for (const std::size_t bytes : {std::size_t{1} << 20, (std::size_t{2} << 20) + 1}) {
    const CUdeviceptr large = on.allocate(bytes), small = on.allocate(1);
    CHECK(large % (std::size_t{2} << 20) == 0);
    CHECK(cuda.memcpy_htod(large + bytes - 1, "x", 1) == kCudaSuccess);
    CHECK(cuda.memcpy_htod(large + bytes, "x", 1) == kCudaInvalidValue);
    CHECK(cuda.mem_free(large) == kCudaSuccess);
    CHECK(cuda.mem_free(small) == kCudaSuccess);
  }
  CHECK(cuda.mem_free(pointer + 16) == kCudaInvalidValue);
  CHECK(cuda.mem_free(pointer) == kCudaSuccess);
  CHECK(cuda.mem_free(pointer) == kCudaInvalidValue);
  CHECK(cuda.mem_free(0) == kCudaSuccess);
  void* host = nullptr;
  CHECK(cuda.mem_alloc_host(&host, 100) == kCudaSuccess);
  CHECK(cuda.mem_free_host(host) == kCudaSuccess);
  CHECK(cuda.mem_free_host(host) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc_host(&host, 0) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc_host(&host, ~std::size_t{0}) == kCudaOutOfMemory);
}

TEST_CASE("copies and fills stay inside their allocation") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUdeviceptr pointer = on.allocate(100);
  const CUdeviceptr other = on.allocate(100);
  char bytes[200] = {};
  CHECK(cuda.memcpy_htod(pointer, bytes, 100) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(pointer, bytes, 101) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer + 100, bytes, 1) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer - 1, bytes, 1) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer, nullptr, 4) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(0, bytes, 4) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtoh(bytes, pointer, 101) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtoh(bytes, pointer, ~std::size_t{0}) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtod_async(other, pointer, 100, nullptr) == kCudaSuccess);
  CHECK(cuda.memcpy_dtod_async(other, pointer + 1, 100, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer, 1, 25, nullptr) == kCudaSuccess);
  CHECK(cuda.memset_d32_async(pointer, 1, 26, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer + 2, 1, 1, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer, 1, std::size_t{1} << 62, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d8_async(pointer, 1, 100, nullptr) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(pointer, bytes, 0) == kCudaSuccess);
}

TEST_CASE("events: what has no time cannot be measured") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  CUevent timed = nullptr;
  CUevent untimed = nullptr;
  CUevent never = nullptr;
  REQUIRE(cuda.event_create(&timed, kEventDefault) == kCudaSuccess);
  REQUIRE(cuda.event_create(&untimed, kEventDisableTiming) == kCudaSuccess);
  REQUIRE(cuda.event_create(&never, kEventDefault) == kCudaSuccess);
  CHECK(cuda.event_record(timed, nullptr) == kCudaSuccess);
  CHECK(cuda.event_record(untimed, nullptr) == kCudaSuccess);
  float millis = -1;
  CHECK(cuda.event_elapsed_time(&millis, timed, timed) == kCudaSuccess);
  CHECK(millis == 0);
  CHECK(cuda.event_elapsed_time(&millis, timed, untimed) == kCudaInvalidHandle);
  CHECK(cuda.event_elapsed_time(&millis, timed, never) == kCudaInvalidHandle);
  CHECK(cuda.event_query(never) == kCudaSuccess);
  CHECK(cuda.stream_wait_event(nullptr, never, 0) == kCudaSuccess);
  for (const CUevent event : {timed, untimed, never}) {
    CHECK(cuda.event_destroy(event) == kCudaSuccess);
  }
}

// An allocator that divides an allocation declares the allocation as a pool and its parts as
// blocks.
TEST_CASE("pools: only their blocks may be used, each as if it were an allocation") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUdeviceptr slab = on.allocate(8192);
  CHECK(cuda.simulator_set_pool(slab, 4096, 1) == kCudaInvalidValue);
  CHECK(cuda.simulator_set_pool(slab + 256, 8192 - 256, 1) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab, 256) == kCudaInvalidValue);
  CHECK(cuda.simulator_set_pool(slab, 8192, 1) == kCudaSuccess);
  CHECK(cuda.simulator_set_pool(slab, 8192, 1) == kCudaInvalidValue);
  float value = 1;
  CHECK(cuda.memcpy_htod(slab, &value, 4) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 256, 1000) == kCudaSuccess);
  // overlaps the first block
  CHECK(cuda.simulator_add_block(slab + 1024, 100) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 8, 8) == kCudaInvalidValue);  // not aligned
  CHECK(cuda.simulator_add_block(slab + 8192, 8) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 7936, 300) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 4096, ~std::uint64_t{0} - 255) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 4096, 0) == kCudaInvalidValue);
  CHECK(cuda.simulator_add_block(slab + 2048, 100) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(slab + 256 + 996, &value, 4) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(slab + 256 + 998, &value, 4) == kCudaInvalidValue);
  CHECK(cuda.simulator_remove_block(slab + 512) == kCudaInvalidValue);
  CHECK(cuda.simulator_remove_block(slab + 256) == kCudaSuccess);
  CHECK(cuda.simulator_remove_block(slab + 256) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(slab + 256, &value, 4) == kCudaInvalidValue);
  CHECK(cuda.simulator_set_pool(slab, 8192, 0) == kCudaInvalidValue);  // the pool still has a block
  // A block may be a pool itself, even if it begins where its pool begins.
  CHECK(cuda.simulator_add_block(slab, 1024) == kCudaSuccess);
  CHECK(cuda.simulator_set_pool(slab, 1024, 1) == kCudaSuccess);
  CHECK(cuda.simulator_add_block(slab, 16) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(slab + 16, &value, 4) == kCudaInvalidValue);
  CHECK(cuda.simulator_remove_block(slab) == kCudaSuccess);
  CHECK(cuda.simulator_set_pool(slab, 1024, 0) == kCudaSuccess);
  CHECK(cuda.simulator_remove_block(slab) == kCudaSuccess);
  CHECK(cuda.simulator_remove_block(slab + 2048) == kCudaSuccess);
  CHECK(cuda.simulator_set_pool(slab, 8192, 0) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(slab + 8188, &value, 4) == kCudaSuccess);
  CHECK(cuda.simulator_remove_block(slab) == kCudaInvalidValue);
  // A pool can be freed as a whole, with its blocks.
  CHECK(cuda.simulator_set_pool(slab, 8192, 1) == kCudaSuccess);
  CHECK(cuda.simulator_add_block(slab, 16) == kCudaSuccess);
  std::size_t before = 0, after = 0, total = 0;
  CHECK(cuda.mem_get_info(&before, &total) == kCudaSuccess);
  CHECK(cuda.mem_free(slab) == kCudaSuccess);
  CHECK(cuda.mem_get_info(&after, &total) == kCudaSuccess);
  CHECK(after == before + 8192);
  CHECK(cuda.memcpy_htod(slab, &value, 4) == kCudaInvalidValue);
  // It makes no difference whether a block begins where the pool begins.
  CHECK(cuda.mem_get_info(&before, &total) == kCudaSuccess);
  CUdeviceptr empty = 0;
  CHECK(cuda.mem_alloc(&empty, 8192) == kCudaSuccess);
  CHECK(cuda.simulator_set_pool(empty, 8192, 1) == kCudaSuccess);
  CHECK(cuda.mem_free(empty) == kCudaSuccess);
  CHECK(cuda.mem_get_info(&after, &total) == kCudaSuccess);
  CHECK(after == before);
}

}  // namespace
}  // namespace annulus::simulator
