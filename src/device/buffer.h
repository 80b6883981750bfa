#ifndef ANNULUS_DEVICE_BUFFER_H_
#define ANNULUS_DEVICE_BUFFER_H_

// Memory: a block on the device, a page-locked block on the host, and the copies between them.
// Asynchronous functions take a raw stream handle, so that they work on a caller's own stream and
// on a device::Stream; null is the default stream.

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/context.h"
#include "device/uploads.h"

namespace annulus::device {

// `bytes` bytes on the device, 256-byte aligned, contents undefined, from the context's arena. A
// buffer of zero bytes allocates nothing and has address 0. Throws as Arena::allocate. Its
// destructor waits for nothing: the arena hands the memory out again once the work of its context
// is done that may use it. Work of other devices that uses the memory must have ended.
class Buffer {
 public:
  Buffer() = default;  // holds nothing
  Buffer(ContextPointer context, std::size_t bytes, MemoryUse use = MemoryUse::kScratch);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  abi::CUdeviceptr address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  const ContextPointer& context() const { return context_; }

 private:
  ContextPointer context_;
  abi::CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
};

// Page-locked host memory, without which copies to and from the host are not asynchronous.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(ContextPointer context, std::size_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  ContextPointer context_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Synchronous copies: the bytes have arrived on return. They do not wait for work on non-blocking
// streams; synchronise those first. Copies and fills of zero bytes do nothing.
void copy_to_device(const Context& context, abi::CUdeviceptr to, const void* from,
                    std::size_t bytes);
void copy_to_host(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes);

// Copies that are ordered on `stream`. Host memory that is not page-locked may make the call
// synchronous; it must not change until the stream has passed this point.
void copy_to_device_async(const Context& context, abi::CUdeviceptr to, const void* from,
                          std::size_t bytes, abi::CUstream stream);
void copy_to_host_async(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes,
                        abi::CUstream stream);
// Copies from the memory of one device to the memory of another one, or within one device if the
// contexts are the same. `stream` belongs to `to_context`, so the receiver queues the copy. The
// caller orders it with the sender's streams by events, which may be waited for across devices. It
// needs no peer access, but with peer access a GPU copies directly and not through the host. It can
// be captured. During a capture, memory of another device's pool (cuMemAllocAsync) has to be
// accessible from `to_context`: cuMemcpyPeerAsync, which needs no such access, cannot be captured.
void copy_peer_async(const Context& to_context, abi::CUdeviceptr to, const Context& from_context,
                     abi::CUdeviceptr from, std::size_t bytes, abi::CUstream stream);

// From now on kernels of `context` may read and write memory of the device of `peer`. True also
// where they already may, or where both are one device; false where the two devices cannot.
bool enable_peer_access(const Context& context, const Context& peer);

void fill_bytes_async(const Context& context, abi::CUdeviceptr to, unsigned char value,
                      std::size_t bytes, abi::CUstream stream);
void fill_words_async(const Context& context, abi::CUdeviceptr to, std::uint32_t value,
                      std::size_t words, abi::CUstream stream);

// A buffer of `bytes` bytes that holds a copy of the parts, for work of every stream. Waits for the
// copy alone. Requires: as Uploads::copy.
Buffer upload(const ContextPointer& context, std::size_t bytes, std::span<const UploadPart> parts,
              MemoryUse use);

// A buffer that holds a copy of `bytes`.
Buffer upload(const ContextPointer& context, std::span<const std::byte> bytes,
              MemoryUse use = MemoryUse::kScratch);

template <typename T>
Buffer upload(const ContextPointer& context, std::span<const T> values,
              MemoryUse use = MemoryUse::kScratch) {
  return upload(context, std::as_bytes(values), use);
}

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_BUFFER_H_
