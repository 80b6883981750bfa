// Copies and fills that Annulus does not call, only other programs (provided.def).

#include "simulator/driver/objects/copies.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

constexpr bool kAsync = true;
constexpr bool kWaits = false;

// Queues a copy. If one side is memory that the driver does not know, the copy has ended when the
// function returns.
CUresult copy(const char* call, const Copy3d& asked, CUstream stream, bool async) {
  if (!async) refuse_under_capture();
  const auto on = find_stream(stream);
  const Copy wanted = read_copy(*on->context(), asked);
  if (wanted.width == 0) return kCudaSuccess;
  const bool alone =
      !wanted.pageable() && alone_between_devices(*on, *wanted.to.memory, *wanted.from.memory);
  const ItemPointer item = on->submit(described(copy_work(call, wanted), on->context(), asked));
  const bool between_devices = wanted.to.memory != nullptr && wanted.from.memory != nullptr &&
                               wanted.to.memory->kind() == GlobalMemory::Kind::kDevice &&
                               wanted.from.memory->kind() == GlobalMemory::Kind::kDevice;
  if (!alone && (async ? !wanted.pageable() : between_devices)) return kCudaSuccess;
  state().queue.finish(item);
  observe(item);
  if (on->context()->lost != kCudaSuccess) return on->context()->lost;
  return on->take_refusal({&item, 1}) ? kCudaOutOfMemory : kCudaSuccess;
}

Copy3d any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return bytes_copy(to, kMemoryUnified, from, kMemoryUnified, bytes);
}

CUresult fill(const char* call, const Fill& wanted, CUstream stream, bool async) {
  if (!async) refuse_under_capture();
  const auto on = find_stream(stream);
  if (wanted.width == 0 || wanted.height == 0) return kCudaSuccess;
  on->submit(described(fill_work(call, *on->context(), wanted), on->context(), wanted));
  return kCudaSuccess;
}

template <typename Number>
CUresult fill_rows(const char* call, CUdeviceptr to, std::size_t pitch, Number value,
                   std::size_t width, std::size_t height, CUstream stream, bool async) {
  const Fill wanted{.to = to,
                    .pitch = pitch,
                    .value = value,
                    .unit = static_cast<int>(sizeof(Number)),
                    .width = width,
                    .height = height};
  return guarded([&] { return fill(call, wanted, stream, async); });
}

// Throws Refusal unless both contexts of a copy between contexts exist.
void check_contexts(const Copy3d& asked) {
  for (void* context : {asked.from_context, asked.to_context}) {
    if (context != nullptr && state().contexts.find(static_cast<CUcontext>(context)) == nullptr) {
      throw Refusal{kCudaInvalidContext};
    }
  }
}

}  // namespace

CUresult memcpy_any(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&] { return copy("cuMemcpy", any_copy(to, from, bytes), nullptr, kWaits); });
}

CUresult memcpy_any_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&] { return copy("cuMemcpyAsync", any_copy(to, from, bytes), stream, kAsync); });
}

CUresult memcpy_2d(const Copy2d* asked) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    return copy("cuMemcpy2D", widen(*asked), nullptr, kWaits);
  });
}

CUresult memcpy_2d_async(const Copy2d* asked, CUstream stream) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    return copy("cuMemcpy2DAsync", widen(*asked), stream, kAsync);
  });
}

CUresult memcpy_3d(const Copy3d* asked) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    return copy("cuMemcpy3D", *asked, nullptr, kWaits);
  });
}

CUresult memcpy_3d_async(const Copy3d* asked, CUstream stream) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    return copy("cuMemcpy3DAsync", *asked, stream, kAsync);
  });
}

CUresult memcpy_3d_peer(const Copy3d* asked) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    check_contexts(*asked);
    return copy("cuMemcpy3DPeer", *asked, nullptr, kWaits);
  });
}

// A node of a graph cannot hold the copy, so it is refused under capture, like cuMemcpyPeerAsync.
CUresult memcpy_3d_peer_async(const Copy3d* asked, CUstream stream) {
  return guarded([&]() -> CUresult {
    if (asked == nullptr) return kCudaInvalidValue;
    refuse_capturing(*find_stream(stream));
    check_contexts(*asked);
    return copy("cuMemcpy3DPeerAsync", *asked, stream, kAsync);
  });
}

CUresult memcpy_dtod(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memcpy_dtod_async(to, from, bytes, nullptr);
  });
}

CUresult memset_d8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d8_async(to, value, count, nullptr);
  });
}

CUresult memset_d16(CUdeviceptr to, unsigned short value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d16_async(to, value, count, nullptr);
  });
}

CUresult memset_d32(CUdeviceptr to, unsigned value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d32_async(to, value, count, nullptr);
  });
}

CUresult memset_d2d8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                     std::size_t height) {
  return fill_rows("cuMemsetD2D8", to, pitch, value, width, height, nullptr, kWaits);
}

CUresult memset_d2d16(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                      std::size_t height) {
  return fill_rows("cuMemsetD2D16", to, pitch, value, width, height, nullptr, kWaits);
}

CUresult memset_d2d32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                      std::size_t height) {
  return fill_rows("cuMemsetD2D32", to, pitch, value, width, height, nullptr, kWaits);
}

CUresult memset_d2d8_async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D8Async", to, pitch, value, width, height, stream, kAsync);
}

CUresult memset_d2d16_async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D16Async", to, pitch, value, width, height, stream, kAsync);
}

CUresult memset_d2d32_async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D32Async", to, pitch, value, width, height, stream, kAsync);
}

}  // namespace annulus::simulator::driver::entry
