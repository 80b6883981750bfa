#include "device/buffer.h"

#include <utility>

namespace annulus::device {
namespace {

// Whether work for `stream` is being captured into a graph. Returns false if the driver does not
// have cuStreamIsCapturing.
bool capturing(const abi::CudaTable& cuda, abi::CUstream stream) {
  if (cuda.stream_is_capturing == nullptr) return false;
  int status = 0;
  abi::check(cuda, cuda.stream_is_capturing(stream, &status), "cuStreamIsCapturing");
  return status != 0;
}

}  // namespace

Buffer::Buffer(ContextPointer context, std::size_t bytes, MemoryUse use)
    : context_(std::move(context)), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(*context_);
  address_ = context_->arena().allocate(bytes, use);
}

Buffer::~Buffer() {
  if (address_ != 0) context_->arena().retire(address_);
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
  // If the context cannot be made current, the driver cannot free the memory either. It is released
  // with the context or the process.
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

Buffer upload(const ContextPointer& context, std::size_t bytes, std::span<const UploadPart> parts,
              MemoryUse use) {
  Buffer buffer(context, bytes, use);
  const ContextScope scope(*context);
  context->uploads().copy(buffer.address(), bytes, parts);
  return buffer;
}

Buffer upload(const ContextPointer& context, std::span<const std::byte> bytes, MemoryUse use) {
  const UploadPart whole{0, bytes};
  return upload(context, bytes.size(), {&whole, 1}, use);
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

void copy_peer_async(const Context& to_context, abi::CUdeviceptr to, const Context& from_context,
                     abi::CUdeviceptr from, std::size_t bytes, abi::CUstream stream) {
  if (bytes == 0) return;
  const ContextScope scope(to_context);
  const abi::CudaTable& cuda = to_context.table();
  if (to_context.handle() == from_context.handle() || capturing(cuda, stream)) {
    abi::check(cuda, cuda.memcpy_dtod_async(to, from, bytes, stream), "cuMemcpyDtoDAsync");
    return;
  }
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
