// Memory of the host that kernels can access, memory with a pitch, pools, and attributes of
// pointers.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;
using driver::Copy2d;
using driver::Copy3d;
using driver::CUmemoryPool;
using driver::MemoryLocation;

CUdeviceptr as_device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

template <typename T>
T attribute(CUdeviceptr pointer, int which) {
  T value{};
  CHECK(entry::pointer_get_attribute(&value, which, pointer) == kCudaSuccess);
  return value;
}

TEST_CASE("kernels reach page-locked memory of all three kinds at the host's own address") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  void* allocated = nullptr;
  REQUIRE(entry::mem_host_alloc(&allocated, 100, 2) == kCudaSuccess);
  CHECK(as_device(allocated) % 4096 == 0);
  std::vector<float> own(100, 1.5f);
  REQUIRE(entry::mem_host_register(&own[1], 50 * sizeof(float), 0) == kCudaSuccess);
  CUdeviceptr managed = 0;
  REQUIRE(entry::mem_alloc_managed(&managed, 64, 1) == kCudaSuccess);
  for (float* value :
       {static_cast<float*>(allocated), &own[7], reinterpret_cast<float*>(managed)}) {
    *value = 3;
    CHECK(on.scale(scale, as_device(value), 2, nullptr) == kCudaSuccess);
    CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
    CHECK(*value == 6);
    // The host's writes are not observed, so no byte of this memory counts as unwritten.
    CHECK(on.scale(scale, as_device(value + 1), 2, nullptr) == kCudaSuccess);
    CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
    CUdeviceptr same = 0;
    CHECK(entry::mem_host_get_device_pointer(&same, value, 0) == kCudaSuccess);
    CHECK(same == as_device(value));
  }
  unsigned flags = 7;
  CHECK(entry::mem_host_get_flags(&flags, allocated) == kCudaSuccess);
  CHECK(flags == 2);
  CHECK(entry::mem_host_get_flags(&flags, &own[7]) == kCudaSuccess);
  CHECK(flags == 0);
  CHECK(entry::mem_host_get_flags(&flags, &flags) == kCudaInvalidValue);
  CHECK(entry::mem_host_unregister(allocated) == driver::kCudaHostMemoryNotRegistered);
  CHECK(on.cuda.mem_free_host(&own[1]) == kCudaInvalidValue);
  CHECK(on.cuda.mem_free_host(allocated) == kCudaSuccess);
  CHECK(on.cuda.mem_free(managed) == kCudaSuccess);
  CHECK(entry::mem_host_unregister(&own[1]) == kCudaSuccess);
  CHECK(own[7] == 6);
  CHECK(own[0] == 1.5f);
  CHECK(own[10] == 1.5f);
}

TEST_CASE("memory that is no longer registered or freed is out of bounds") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  std::vector<float> own(16, 1);
  CHECK(on.scale(scale, as_device(own.data()), 2, nullptr) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaIllegalAddress);
  CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  REQUIRE(entry::mem_host_register(own.data(), 16, 0) == kCudaSuccess);
  CHECK(entry::mem_host_register(&own[3], 16, 0) == driver::kCudaHostMemoryAlreadyRegistered);
  CHECK(on.scale(scale, as_device(&own[4]), 2, nullptr) == kCudaSuccess);  // past its end
  CHECK(on.cuda.ctx_synchronize() == kCudaIllegalAddress);
  CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  CHECK(entry::mem_host_unregister(own.data()) == kCudaSuccess);
  CHECK(entry::mem_host_unregister(own.data()) == driver::kCudaHostMemoryNotRegistered);
  CHECK(on.scale(scale, as_device(own.data()), 2, nullptr) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaIllegalAddress);
  CHECK(entry::mem_host_register(nullptr, 16, 0) != kCudaSuccess);
  CHECK(own[0] == 1);
}

TEST_CASE("what is said of managed memory is given back") {
  const OnDevice on;
  CUdeviceptr memory = 0;
  REQUIRE(entry::mem_alloc_managed(&memory, 4096, 1) == kCudaSuccess);
  const auto range = [&](int which) {
    int value = 99;
    CHECK(entry::mem_range_get_attribute(&value, sizeof value, which, memory, 4096) ==
          kCudaSuccess);
    return value;
  };
  CHECK(range(driver::kRangeReadMostly) == 0);
  CHECK(range(driver::kRangePreferred) == driver::kInvalidDevice);
  CHECK(entry::mem_advise(memory, 4096, driver::kAdviseSetReadMostly, 0) == kCudaSuccess);
  CHECK(entry::mem_advise_v2(memory, 4096, driver::kAdviseSetPreferred,
                             {driver::kLocationDevice, 1}) == kCudaSuccess);
  CHECK(entry::mem_advise(memory, 4096, driver::kAdviseSetAccessedBy, 2) == kCudaSuccess);
  CHECK(entry::mem_prefetch_async(memory, 4096, driver::kCpuDevice, nullptr) == kCudaSuccess);
  CHECK(range(driver::kRangeReadMostly) == 1);
  CHECK(range(driver::kRangePreferred) == 1);
  CHECK(range(driver::kRangeLastPrefetch) == driver::kCpuDevice);
  int by[2] = {};
  CHECK(entry::mem_range_get_attribute(by, sizeof by, driver::kRangeAccessedBy, memory, 4096) ==
        kCudaSuccess);
  CHECK(by[0] == 2);
  CHECK(by[1] == driver::kInvalidDevice);
  CHECK(entry::mem_prefetch_async_v2(memory, 4096, {driver::kLocationDevice, 0}, 0, nullptr) ==
        kCudaSuccess);
  CHECK(range(driver::kRangeLastPrefetchType) == driver::kLocationDevice);
  CHECK(entry::mem_prefetch_async(memory, 4096, 99, nullptr) == kCudaInvalidDevice);
  CHECK(entry::mem_advise(memory, 4097, driver::kAdviseSetReadMostly, 0) == kCudaInvalidValue);
  CHECK(entry::stream_attach_mem_async(nullptr, memory, 0, 4) == kCudaSuccess);
  CHECK(entry::stream_attach_mem_async(nullptr, memory, 0, 3) == kCudaInvalidValue);
  CHECK(entry::mem_alloc_managed(&memory, 4096, 3) == kCudaInvalidValue);
}

TEST_CASE("pointers tell what they point to") {
  const OnDevice on;
  const CUdeviceptr device = on.allocate(1000);
  CUdeviceptr managed = 0;
  void* locked = nullptr;
  REQUIRE(entry::mem_alloc_managed(&managed, 100, 1) == kCudaSuccess);
  REQUIRE(entry::mem_host_alloc(&locked, 100, 0) == kCudaSuccess);
  CHECK(attribute<unsigned>(device + 8, driver::kPointerMemoryType) == driver::kMemoryDevice);
  CHECK(attribute<unsigned>(managed, driver::kPointerMemoryType) == driver::kMemoryDevice);
  CHECK(attribute<unsigned>(as_device(locked), driver::kPointerMemoryType) == driver::kMemoryHost);
  CHECK(attribute<bool>(managed, driver::kPointerIsManaged));
  CHECK_FALSE(attribute<bool>(device, driver::kPointerIsManaged));
  CHECK(attribute<void*>(as_device(locked) + 4, driver::kPointerHostPointer) ==
        static_cast<char*>(locked) + 4);
  CHECK(attribute<CUdeviceptr>(managed + 4, driver::kPointerDevicePointer) == managed + 4);
  CHECK(attribute<std::size_t>(device + 4, driver::kPointerRangeSize) == 1000);
  CHECK(attribute<CUcontext>(device, driver::kPointerContext) == on.context);
  CHECK(attribute<CUcontext>(managed, driver::kPointerContext) == on.context);
  void* host = nullptr;
  CHECK(entry::pointer_get_attribute(&host, driver::kPointerHostPointer, device) ==
        kCudaInvalidValue);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK(entry::mem_get_address_range(&base, &bytes, as_device(locked) + 99) == kCudaSuccess);
  CHECK(base == as_device(locked));
  CHECK(bytes == 100);
  // An unknown pointer is not an error if several attributes are queried at once.
  int which[] = {driver::kPointerMemoryType, driver::kPointerDeviceOrdinal};
  unsigned type = 9;
  int ordinal = 9;
  void* values[] = {&type, &ordinal};
  int on_stack = 0;
  CHECK(entry::pointer_get_attributes(2, which, values, as_device(&on_stack)) == kCudaSuccess);
  CHECK(type == 0);
  CHECK(ordinal == driver::kInvalidDevice);
  CHECK(entry::pointer_get_attributes(2, which, values, managed) == kCudaSuccess);
  CHECK(type == driver::kMemoryDevice);
  CHECK(ordinal == 0);
  CHECK(entry::pointer_get_attribute(&type, driver::kPointerMemoryType, as_device(&on_stack)) ==
        kCudaInvalidValue);
  CHECK(on.cuda.mem_free_host(locked) == kCudaSuccess);
}

TEST_CASE("rows and planes are copied between the host and pitched memory") {
  const OnDevice on;
  CUdeviceptr pitched = 0;
  std::size_t pitch = 0;
  REQUIRE(entry::mem_alloc_pitch(&pitched, &pitch, 100, 8, 4) == kCudaSuccess);
  CHECK(pitch == 512);
  CHECK(entry::mem_alloc_pitch(&pitched, &pitch, 100, 8, 3) == kCudaInvalidValue);
  std::vector<unsigned char> host(10 * 8);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i);
  CHECK(entry::memset_d2d8(pitched, pitch, 0xee, 100, 8) == kCudaSuccess);
  Copy2d up{};
  up.from_type = driver::kMemoryHost;
  up.from_host = host.data();
  up.from_pitch = 10;
  up.from_x = 2;
  up.from_y = 1;
  up.to_type = driver::kMemoryDevice;
  up.to_device = pitched;
  up.to_pitch = pitch;
  up.to_x = 4;
  up.to_y = 3;
  up.width = 7;
  up.height = 5;
  CHECK(entry::memcpy_2d(&up) == kCudaSuccess);
  std::vector<unsigned char> back(100 * 8, 1);
  Copy2d down{};
  down.from_type = driver::kMemoryUnified;
  down.from_device = pitched;
  down.from_pitch = pitch;
  down.to_type = driver::kMemoryUnified;
  down.to_device = as_device(back.data());
  down.width = 100;
  down.height = 8;
  // pageable memory: the copy has ended
  CHECK(entry::memcpy_2d_async(&down, nullptr) == kCudaSuccess);
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 100; ++x) {
      const bool inside = y >= 3 && x >= 4 && x < 11;
      CHECK(back[y * 100 + x] == (inside ? host[(y - 2) * 10 + x - 2] : 0xee));
    }
  }
  up.width = 9;  // past the host's pitch
  CHECK(entry::memcpy_2d(&up) == kCudaInvalidValue);
  up.width = 7;
  up.height = 6;  // past the end of the memory
  CHECK(entry::memcpy_2d(&up) == kCudaInvalidValue);
  up.to_type = driver::kMemoryArray;
  CHECK(entry::memcpy_2d(&up) != kCudaSuccess);
  CHECK(entry::memcpy_2d(nullptr) == kCudaInvalidValue);

  // 2 planes of 3 rows of 4 bytes, out of 3 planes of 4 rows of 8.
  const CUdeviceptr cube = on.allocate(3 * 4 * 8);
  for (unsigned i = 0; i < 24; ++i) {
    CHECK(entry::memset_d32(cube + 4 * i, i, 1) == kCudaSuccess);
  }
  Copy3d part{};
  part.from_type = driver::kMemoryDevice;
  part.from_device = cube;
  part.from_pitch = 8;
  part.from_height = 4;
  part.from_x = 4;
  part.from_y = 1;
  part.from_z = 1;
  part.to_type = driver::kMemoryHost;
  unsigned numbers[6] = {};
  part.to_host = numbers;
  part.width = 4;
  part.height = 3;
  part.depth = 2;
  CHECK(entry::memcpy_3d(&part) == kCudaSuccess);
  const unsigned wanted[] = {11, 13, 15, 19, 21, 23};
  CHECK(std::memcmp(numbers, wanted, sizeof wanted) == 0);
  part.depth = 3;
  CHECK(entry::memcpy_3d(&part) == kCudaInvalidValue);
}

TEST_CASE("rows are filled, and what does not fit is refused") {
  const OnDevice on;
  const CUdeviceptr memory = on.allocate(64);
  CHECK(entry::memset_d8(memory, 0, 64) == kCudaSuccess);
  CHECK(entry::memset_d2d16(memory + 4, 32, 0x0102, 3, 2) == kCudaSuccess);
  CHECK(entry::memset_d2d32_async(memory + 16, 32, 0x03040506, 1, 2, nullptr) == kCudaSuccess);
  unsigned char bytes[64] = {};
  CHECK(on.cuda.memcpy_dtoh(bytes, memory, 64) == kCudaSuccess);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t x = i % 32;
    int wanted = 0;
    if (x >= 4 && x < 10) wanted = x % 2 == 0 ? 2 : 1;
    if (x >= 16 && x < 20) wanted = static_cast<int>(22 - x);
    CHECK(bytes[i] == wanted);
  }
  CHECK(entry::memset_d2d32(memory + 2, 32, 0, 1, 2) == kCudaInvalidValue);
  CHECK(entry::memset_d2d32(memory, 2, 0, 1, 2) == kCudaInvalidValue);
  CHECK(entry::memset_d2d8(memory, 32, 0, 32, 3) == kCudaInvalidValue);
}

TEST_CASE("a race with a copy of mapped memory is found") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  void* locked = nullptr;
  REQUIRE(entry::mem_host_alloc(&locked, 64, 0) == kCudaSuccess);
  CUstream one = nullptr;
  CUstream two = nullptr;
  REQUIRE(on.cuda.stream_create(&one, kStreamNonBlocking) == kCudaSuccess);
  REQUIRE(on.cuda.stream_create(&two, kStreamNonBlocking) == kCudaSuccess);
  const CUdeviceptr memory = on.allocate(64);
  REQUIRE(on.cuda.memset_d8_async(memory, 0, 64, one) == kCudaSuccess);
  REQUIRE(on.cuda.stream_synchronize(one) == kCudaSuccess);
  CHECK(on.scale(scale, as_device(locked), 2, one) == kCudaSuccess);
  CHECK(entry::memcpy_any_async(memory, as_device(locked), 64, two) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaLaunchFailed);
  CHECK(on.message().find("missing wait") != std::string::npos);
  CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  CHECK(on.cuda.mem_free_host(locked) == kCudaSuccess);
}

TEST_CASE("pools count what is allocated from them") {
  const OnDevice on;
  driver::PoolProperties properties{};
  properties.allocation_type = driver::kAllocationPinned;
  properties.location = {driver::kLocationDevice, on.device};
  properties.max_bytes = 10000;
  CUmemoryPool pool = nullptr;
  REQUIRE(entry::mem_pool_create(&pool, &properties) == kCudaSuccess);
  const auto used = [&](int which) {
    std::uint64_t bytes = 0;
    CHECK(entry::mem_pool_get_attribute(pool, which, &bytes) == kCudaSuccess);
    return bytes;
  };
  CUdeviceptr memory = 0;
  CHECK(entry::mem_alloc_from_pool_async(&memory, 6000, pool, nullptr) == kCudaSuccess);
  CUdeviceptr more = 0;
  CHECK(entry::mem_alloc_from_pool_async(&more, 6000, pool, nullptr) == kCudaOutOfMemory);
  CHECK(used(driver::kPoolUsedNow) == 6000);
  CHECK(attribute<CUmemoryPool>(memory, driver::kPointerMemoryPool) == pool);
  CHECK(entry::mem_free_async(memory, nullptr) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  CHECK(used(driver::kPoolUsedNow) == 0);
  CHECK(used(driver::kPoolUsedHigh) == 6000);
  std::uint64_t threshold = 123;
  CHECK(entry::mem_pool_set_attribute(pool, driver::kPoolReleaseThreshold, &threshold) ==
        kCudaSuccess);
  CHECK(used(driver::kPoolReleaseThreshold) == 123);
  CHECK(entry::mem_pool_set_attribute(pool, driver::kPoolUsedHigh, &threshold) ==
        kCudaInvalidValue);
  CHECK(entry::mem_pool_trim_to(pool, 0) == kCudaSuccess);

  CUmemoryPool given = nullptr;
  CUmemoryPool current = nullptr;
  CHECK(entry::device_get_default_mem_pool(&given, on.device) == kCudaSuccess);
  CHECK(entry::device_get_mem_pool(&current, on.device) == kCudaSuccess);
  CHECK(current == given);
  CHECK(entry::device_set_mem_pool(on.device, pool) == kCudaSuccess);
  CHECK(entry::mem_alloc_async(&memory, 100, nullptr) == kCudaSuccess);
  CHECK(attribute<CUmemoryPool>(memory, driver::kPointerMemoryPool) == pool);
  CHECK(entry::device_set_mem_pool(1, pool) == kCudaInvalidValue);
  int access = 9;
  MemoryLocation peer{driver::kLocationDevice, 1};
  CHECK(entry::mem_pool_get_access(&access, pool, &peer) == kCudaSuccess);
  CHECK(access == driver::kAccessNone);
  const driver::AccessDescription both{peer, driver::kAccessReadWrite};
  CHECK(entry::mem_pool_set_access(pool, &both, 1) == kCudaSuccess);
  CHECK(entry::mem_pool_get_access(&access, pool, &peer) == kCudaSuccess);
  CHECK(access == driver::kAccessReadWrite);
  CHECK(entry::mem_pool_destroy(given) == kCudaInvalidValue);
  CHECK(entry::mem_pool_destroy(pool) == kCudaSuccess);
  CHECK(entry::mem_pool_destroy(pool) == kCudaInvalidValue);
  CHECK(entry::device_get_mem_pool(&current, on.device) == kCudaSuccess);
  CHECK(current == given);
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  CHECK(on.cuda.mem_free(memory) == kCudaSuccess);
}

}  // namespace
}  // namespace annulus::simulator
