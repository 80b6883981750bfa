#include "device/buffer.h"

#include <exception>
#include <utility>

#include "base/fail.h"

namespace annulus::device {
namespace {

constexpr std::size_t kBufferAlignment = 256;  // the alignment that cuMemAlloc promises

// Drops exceptions, because its callers are destructors.
void give_back(const AllocatorCallbacks& allocator, abi::CUdeviceptr address, std::size_t bytes) {
  try {
    allocator.release(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes);
  } catch (...) {
  }
}

[[noreturn]] void fail_out_of_memory(const Context& context, std::size_t bytes) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  context.table().mem_get_info(&free_bytes, &total_bytes);
  base::fail(ErrorCode::kOutOfMemory,
             "{} bytes do not fit on {} (CUdevice {}): {} of {} bytes are free; free some, or make "
             "the problem smaller",
             bytes, context.info().name, context.info().ordinal, free_bytes, total_bytes);
}

constexpr char kRemedy[] = "let it hold more, or make the problem smaller";

// Allocates from the caller's allocator.
abi::CUdeviceptr ask(const AllocatorCallbacks& allocator, std::size_t bytes) {
  void* memory = nullptr;
  try {
    memory = allocator.allocate(bytes, kBufferAlignment);
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
    base::fail(ErrorCode::kOutOfMemory, "the caller's allocator has no {} bytes; {}", bytes,
               kRemedy);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % kBufferAlignment != 0) {
    give_back(allocator, address, bytes);
    base::fail(ErrorCode::kInvalidArgument,
               "the caller's allocator gave {:#x} for {} bytes, which is not a multiple of the {} "
               "it was asked for",
               address, bytes, kBufferAlignment);
  }
  return address;
}

}  // namespace

Buffer::Buffer(ContextPointer context, std::size_t bytes)
    : context_(std::move(context)), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  if (context_->allocator().allocate) {
    address_ = ask(context_->allocator(), bytes);
    return;
  }
  const abi::CUresult code = context_->table().mem_alloc(&address_, bytes);
  if (code == abi::kCudaOutOfMemory) fail_out_of_memory(*context_, bytes);
  abi::check(context_->table(), code, "cuMemAlloc");
}

Buffer::~Buffer() {
  if (address_ == 0) return;
  const QuietScope scope(*context_);
  // The next owner of the memory does not know of our work, so that must have ended. cuMemFree
  // waits as well on most drivers, but does not promise it. Where the context is lost there is no
  // work to wait for, and an allocator still gets its memory back.
  if (scope.active()) context_->table().ctx_synchronize();
  if (context_->allocator().release) {
    give_back(context_->allocator(), address_, bytes_);
  } else if (scope.active()) {
    context_->table().mem_free(address_);
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : context_(std::move(other.context_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostBuffer::HostBuffer(ContextPointer context, std::size_t bytes)
    : context_(std::move(context)), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  abi::check(context_->table(), context_->table().mem_alloc_host(&data_, bytes), "cuMemAllocHost");
}

HostBuffer::~HostBuffer() {
  if (data_ == nullptr) return;
  const QuietScope scope(*context_);
  if (!scope.active()) return;
  context_->table().ctx_synchronize();
  context_->table().mem_free_host(data_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : context_(std::move(other.context_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void copy_to_device(const Context& context, abi::CUdeviceptr to, const void* from,
                    std::size_t bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memcpy_htod(to, from, bytes), "cuMemcpyHtoD");
}

void copy_to_host(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memcpy_dtoh(to, from, bytes), "cuMemcpyDtoH");
}

void copy_to_device_async(const Context& context, abi::CUdeviceptr to, const void* from,
                          std::size_t bytes, abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memcpy_htod_async(to, from, bytes, stream),
             "cuMemcpyHtoDAsync");
}

void copy_to_host_async(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes,
                        abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memcpy_dtoh_async(to, from, bytes, stream),
             "cuMemcpyDtoHAsync");
}

void copy_on_device_async(const Context& context, abi::CUdeviceptr to, abi::CUdeviceptr from,
                          std::size_t bytes, abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memcpy_dtod_async(to, from, bytes, stream),
             "cuMemcpyDtoDAsync");
}

void copy_peer_async(const Context& to_context, abi::CUdeviceptr to, const Context& from_context,
                     abi::CUdeviceptr from, std::size_t bytes, abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(to_context);
  const abi::CudaTable& cuda = to_context.table();
  abi::check(
      cuda,
      cuda.memcpy_peer_async(to, to_context.handle(), from, from_context.handle(), bytes, stream),
      "cuMemcpyPeerAsync");
}

bool enable_peer_access(const Context& context, const Context& peer) {
  if (context.handle() == peer.handle()) return true;
  const abi::CudaTable& cuda = context.table();
  int can = 0;
  abi::check(cuda, cuda.device_can_access_peer(&can, context.device(), peer.device()),
             "cuDeviceCanAccessPeer");
  if (can == 0) return false;
  const ContextScope scope(context);
  const abi::CUresult code = cuda.ctx_enable_peer_access(peer.handle(), 0);
  if (code != abi::kCudaPeerAccessAlreadyEnabled) abi::check(cuda, code, "cuCtxEnablePeerAccess");
  return true;
}

void fill_bytes_async(const Context& context, abi::CUdeviceptr to, unsigned char value,
                      std::size_t bytes, abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memset_d8_async(to, value, bytes, stream),
             "cuMemsetD8Async");
}

void fill_words_async(const Context& context, abi::CUdeviceptr to, std::uint32_t value,
                      std::size_t words, abi::CUstream stream) {
  if (words == 0) return;
  const ContextScope scope(context);
  abi::check(context.table(), context.table().memset_d32_async(to, value, words, stream),
             "cuMemsetD32Async");
}

}  // namespace annulus::device
