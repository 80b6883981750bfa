#ifndef ANNULUS_DEVICE_BUFFER_H_
#define ANNULUS_DEVICE_BUFFER_H_

// Memory: a block on the device, a page-locked block on the host, and copies between them.
// Asynchronous functions take a raw stream handle, so that they accept a caller's stream and a
// device::Stream. Null is the default stream.

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/context.h"
#include "device/uploads.h"

namespace annulus::device {

// `bytes` bytes on the device, from the context's arena. They are 256-byte aligned, and their
// contents are undefined. A buffer of zero bytes allocates nothing and has address 0. Throws as
// Arena::allocate() does. The destructor does not wait: the arena reuses the memory after the work
// of its context that may use it has ended. Work of other devices that uses the memory must have
// ended before.
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

// Page-locked host memory. Copies between the device and other host memory are not asynchronous.
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
// streams, so synchronise these first. Copies and fills of zero bytes do nothing.
void copy_to_device(const Context& context, abi::CUdeviceptr to, const void* from,
                    std::size_t bytes);
void copy_to_host(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes);

// Copies that are ordered on `stream`. If host memory is not page-locked, the call may be
// synchronous. The host memory must not change until the stream has passed the copy.
void copy_to_device_async(const Context& context, abi::CUdeviceptr to, const void* from,
                          std::size_t bytes, abi::CUstream stream);
void copy_to_host_async(const Context& context, void* to, abi::CUdeviceptr from, std::size_t bytes,
                        abi::CUstream stream);
// Copies from the memory of one device to the memory of another, or within one device if the
// contexts are the same. `stream` belongs to `to_context`, so the receiver queues the copy. The
// caller orders it with the sender's streams by events, which may be waited for across devices.
// Peer access is not required, but with it a GPU copies directly instead of through the host. The
// copy can be captured. During a capture, memory of another device's pool (cuMemAllocAsync) must be
// accessible from `to_context`: cuMemcpyPeerAsync, which does not require that access, cannot be
// captured.
void copy_peer_async(const Context& to_context, abi::CUdeviceptr to, const Context& from_context,
                     abi::CUdeviceptr from, std::size_t bytes, abi::CUstream stream);

// Allows kernels of `context` to access memory of the device of `peer`. Returns true also if they
// already may, or if both are the same device. Returns false if the two devices do not support it.
bool enable_peer_access(const Context& context, const Context& peer);

void fill_bytes_async(const Context& context, abi::CUdeviceptr to, unsigned char value,
                      std::size_t bytes, abi::CUstream stream);
void fill_words_async(const Context& context, abi::CUdeviceptr to, std::uint32_t value,
                      std::size_t words, abi::CUstream stream);

// A buffer of `bytes` bytes that contains a copy of the parts, ready for work on any stream. Waits
// only for the copy. Requires: the conditions of Uploads::copy().
Buffer upload(const ContextPointer& context, std::size_t bytes, std::span<const UploadPart> parts,
              MemoryUse use);

// A buffer that contains a copy of `bytes`.
Buffer upload(const ContextPointer& context, std::span<const std::byte> bytes,
              MemoryUse use = MemoryUse::kScratch);

template <typename T>
Buffer upload(const ContextPointer& context, std::span<const T> values,
              MemoryUse use = MemoryUse::kScratch) {
  return upload(context, std::as_bytes(values), use);
}

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_BUFFER_H_
