#include "device/slab_source.h"

#include <exception>

#include "base/fail.h"
#include "device/context.h"

namespace annulus::device {
namespace {

constexpr std::size_t kAlignment = 256;  // the alignment that cuMemAlloc guarantees
constexpr char kRemedy[] = "let it hold more, or make the problem smaller";

}  // namespace

abi::CUdeviceptr SlabSource::take(std::size_t bytes) const {
  if (!allocator_.allocate) {
    abi::CUdeviceptr address = 0;
    const abi::CUresult code = context_.table().mem_alloc(&address, bytes);
    if (code == abi::kCudaOutOfMemory) {
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      context_.table().mem_get_info(&free_bytes, &total_bytes);
      base::fail(ErrorCode::kOutOfMemory,
                 "{} bytes do not fit on {} (CUdevice {}): {} of {} bytes are free; free some, or "
                 "make the problem smaller",
                 bytes, context_.info().name, context_.info().ordinal, free_bytes, total_bytes);
    }
    abi::check(context_.table(), code, "cuMemAlloc");
    return address;
  }
  void* memory = nullptr;
  try {
    memory = allocator_.allocate(bytes, kAlignment);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    base::fail(ErrorCode::kOutOfMemory, "the caller's allocator refused {} bytes: {}; {}", bytes,
               error.what(), kRemedy);
  } catch (...) {
    base::fail(ErrorCode::kOutOfMemory, "the caller's allocator refused {} bytes; {}", bytes,
               kRemedy);
  }
  if (memory == nullptr) {
    base::fail(ErrorCode::kOutOfMemory, "the caller's allocator returned null for {} bytes; {}",
               bytes, kRemedy);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % kAlignment != 0) {
    give_back(address, bytes, true);
    base::fail(ErrorCode::kInvalidArgument,
               "the caller's allocator returned {:#x} for {} bytes, which is not a multiple of the "
               "alignment, {}",
               address, bytes, kAlignment);
  }
  return address;
}

void SlabSource::give_back(abi::CUdeviceptr address, std::size_t bytes, bool current) const {
  if (!allocator_.release) {
    if (current) context_.table().mem_free(address);
    return;
  }
  try {
    allocator_.release(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes);
  } catch (...) {
  }
}

}  // namespace annulus::device
