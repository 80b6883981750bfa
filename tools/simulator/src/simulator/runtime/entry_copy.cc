// Copies and fills. A function without a stream uses the default stream and waits. If the default
// stream belongs to the thread, it makes the asynchronous call and then waits.

#include <cstring>

#include "simulator/runtime/copies.h"
#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

bool is_known(const void* pointer) {
  unsigned type = 0;
  return driver().pointer_get_attribute(&type, kPointerMemoryType, address(pointer)) == cudaSuccess;
}

// The default stream of a function without a stream parameter, if it belongs to the thread. Null:
// the driver's functions without a stream do the work.
CUstream own_stream() { return resolve(CUstream{nullptr}); }

Error wait_for(CUstream stream, CUresult code) {
  return code != cudaSuccess ? code : driver().stream_synchronize(stream);
}

// The driver has no copy within the host's memory. It runs after the work of the stream.
Error copy_on_host(void* to, const void* from, std::size_t bytes, CUstream stream) {
  need(driver().stream_synchronize(stream));
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

// Which of the driver's copies serves a copy.
int direction(const void* to, const void* from, int kind) {
  if (kind != kByAddress || is_known(to) || is_known(from)) return kind;
  return kHostToHost;
}

Error copy_and_wait(void* to, const void* from, std::size_t bytes, int kind) {
  switch (kind) {
    case kHostToHost:
      return copy_on_host(to, from, bytes, nullptr);
    case kHostToDevice:
      return driver().memcpy_htod(address(to), from, bytes);
    case kDeviceToHost:
      return driver().memcpy_dtoh(to, address(from), bytes);
    case kDeviceToDevice:
      return driver().memcpy_dtod(address(to), address(from), bytes);
    default:
      return driver().memcpy_any(address(to), address(from), bytes);
  }
}

Error copy_behind(void* to, const void* from, std::size_t bytes, int kind, CUstream stream) {
  switch (kind) {
    case kHostToHost:
      return copy_on_host(to, from, bytes, stream);
    case kHostToDevice:
      return driver().memcpy_htod_async(address(to), from, bytes, stream);
    case kDeviceToHost:
      return driver().memcpy_dtoh_async(to, address(from), bytes, stream);
    case kDeviceToDevice:
      return driver().memcpy_dtod_async(address(to), address(from), bytes, stream);
    default:
      return driver().memcpy_any_async(address(to), address(from), bytes, stream);
  }
}

// Checks the arguments of a copy of bytes. Returns false if there is nothing to do.
bool begin_copy(const void* to, const void* from, std::size_t bytes, int kind) {
  check_kind(kind);
  enter();
  if (bytes == 0) return false;
  if (to == nullptr || from == nullptr) throw Refusal{cudaErrorInvalidValue};
  return true;
}

DriverCopy2D rows_of(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                     std::size_t width, std::size_t height, int kind) {
  Copy3D copy = row_copy(to, from, width, kind);
  copy.srcPtr.pitch = from_pitch;
  copy.dstPtr.pitch = to_pitch;
  copy.extent.height = height;
  const DriverCopy3D made = driver_copy(copy);
  const auto flat = [](const DriverSide3D& side) {
    return DriverSide2D{side.x, side.y, side.type, side.host, side.device, side.array, side.pitch};
  };
  return {flat(made.from), flat(made.to), made.width, made.height};
}

char* symbol_at(const void* symbol, std::size_t bytes, std::size_t offset) {
  std::size_t size = 0;
  char* const begin = address_of(symbol, &size);
  if (offset > size || bytes > size - offset) throw Refusal{cudaErrorInvalidValue};
  return begin + offset;
}

// A symbol is on the device, so the other side determines the kind.
void check_kind_of_symbol(int kind, int host_kind) {
  if (kind != host_kind && kind != kDeviceToDevice && kind != kByAddress) {
    throw Refusal{cudaErrorInvalidMemcpyDirection};
  }
}

}  // namespace

Error memcpy(void* to, const void* from, std::size_t bytes, int kind) {
  if (!begin_copy(to, from, bytes, kind)) return cudaSuccess;
  const CUstream stream = own_stream();
  const int way = direction(to, from, kind);
  if (stream != nullptr) return wait_for(stream, copy_behind(to, from, bytes, way, stream));
  return copy_and_wait(to, from, bytes, way);
}

Error memcpy_async(void* to, const void* from, std::size_t bytes, int kind, CUstream stream) {
  if (!begin_copy(to, from, bytes, kind)) return cudaSuccess;
  return copy_behind(to, from, bytes, direction(to, from, kind), resolve(stream));
}

Error memcpy_between(void* to, int to_device, const void* from, int from_device,
                     std::size_t bytes) {
  enter();
  return driver().memcpy_peer(address(to), primary_context(to_device), address(from),
                              primary_context(from_device), bytes);
}

Error memcpy_between_async(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes, CUstream stream) {
  enter();
  return driver().memcpy_peer_async(address(to), primary_context(to_device), address(from),
                                    primary_context(from_device), bytes, resolve(stream));
}

Error copy_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
              std::size_t width, std::size_t height, int kind) {
  const CUstream stream = own_stream();
  if (stream != nullptr) {
    return wait_for(stream,
                    copy_2d_async(to, to_pitch, from, from_pitch, width, height, kind, stream));
  }
  enter();
  if (width == 0 || height == 0) return cudaSuccess;
  const DriverCopy2D copy = rows_of(to, to_pitch, from, from_pitch, width, height, kind);
  return driver().memcpy_2d(&copy);
}

Error copy_2d_async(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                    std::size_t width, std::size_t height, int kind, CUstream stream) {
  enter();
  if (width == 0 || height == 0) return cudaSuccess;
  const DriverCopy2D copy = rows_of(to, to_pitch, from, from_pitch, width, height, kind);
  return driver().memcpy_2d_async(&copy, resolve(stream));
}

Error copy_3d(const Copy3D* copy) {
  const CUstream stream = own_stream();
  if (stream != nullptr) return wait_for(stream, copy_3d_async(copy, stream));
  if (copy == nullptr) return cudaErrorInvalidValue;
  enter();
  const DriverCopy3D made = driver_copy(*copy);
  return driver().memcpy_3d(&made);
}

Error copy_3d_async(const Copy3D* copy, CUstream stream) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  enter();
  const DriverCopy3D made = driver_copy(*copy);
  return driver().memcpy_3d_async(&made, resolve(stream));
}

Error memcpy_to_symbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                       int kind) {
  check_kind_of_symbol(kind, kHostToDevice);
  return memcpy(symbol_at(symbol, bytes, offset), from, bytes, kind);
}

Error memcpy_to_symbol_async(const void* symbol, const void* from, std::size_t bytes,
                             std::size_t offset, int kind, CUstream stream) {
  check_kind_of_symbol(kind, kHostToDevice);
  return memcpy_async(symbol_at(symbol, bytes, offset), from, bytes, kind, stream);
}

Error memcpy_from_symbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                         int kind) {
  check_kind_of_symbol(kind, kDeviceToHost);
  return memcpy(to, symbol_at(symbol, bytes, offset), bytes, kind);
}

Error memcpy_from_symbol_async(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                               int kind, CUstream stream) {
  check_kind_of_symbol(kind, kDeviceToHost);
  return memcpy_async(to, symbol_at(symbol, bytes, offset), bytes, kind, stream);
}

Error get_symbol_address(void** pointer, const void* symbol) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = address_of(symbol, nullptr);
  return cudaSuccess;
}

Error get_symbol_size(std::size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return cudaErrorInvalidValue;
  address_of(symbol, bytes);
  return cudaSuccess;
}

Error memset(void* to, int value, std::size_t bytes) {
  enter();
  const auto byte = static_cast<unsigned char>(value);
  const CUstream stream = own_stream();
  if (stream == nullptr) return driver().memset_d8(address(to), byte, bytes);
  return wait_for(stream, driver().memset_d8_async(address(to), byte, bytes, stream));
}

Error memset_async(void* to, int value, std::size_t bytes, CUstream stream) {
  enter();
  return driver().memset_d8_async(address(to), static_cast<unsigned char>(value), bytes,
                                  resolve(stream));
}

Error fill_2d(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  enter();
  const auto byte = static_cast<unsigned char>(value);
  const CUstream stream = own_stream();
  if (stream == nullptr) return driver().memset_2d(address(to), pitch, byte, width, height);
  return wait_for(stream,
                  driver().memset_2d_async(address(to), pitch, byte, width, height, stream));
}

Error fill_2d_async(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                    CUstream stream) {
  enter();
  return driver().memset_2d_async(address(to), pitch, static_cast<unsigned char>(value), width,
                                  height, resolve(stream));
}

// Slices follow one another. Each has the number of rows of the allocation.
Error fill_3d(PitchedPointer to, int value, Extent extent) {
  const CUstream stream = own_stream();
  return wait_for(stream, fill_3d_async(to, value, extent, stream));
}

Error fill_3d_async(PitchedPointer to, int value, Extent extent, CUstream stream) {
  enter();
  if (extent.width > to.pitch || (extent.depth > 1 && extent.height > to.ysize)) {
    return cudaErrorInvalidValue;
  }
  auto* slice = static_cast<char*>(to.ptr);
  for (std::size_t z = 0; z < extent.depth; ++z, slice += to.pitch * to.ysize) {
    need(fill_2d_async(slice, to.pitch, value, extent.width, extent.height, stream));
  }
  return cudaSuccess;
}

}  // namespace annulus::simulator::runtime::entry
