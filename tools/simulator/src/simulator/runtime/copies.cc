#include "simulator/runtime/copies.h"

#include "simulator/runtime/driver.h"

namespace annulus::simulator::runtime {
namespace {

DriverSide3D side(const PitchedPointer& pointer, const Position& position, int type) {
  DriverSide3D side{};
  side.x = position.x;
  side.y = position.y;
  side.z = position.z;
  side.type = type;
  if (type == kDriverHost) {
    side.host = pointer.ptr;
  } else {
    side.device = reinterpret_cast<CUdeviceptr>(pointer.ptr);
  }
  side.pitch = pointer.pitch;
  side.height = pointer.ysize;
  return side;
}

}  // namespace

void check_kind(int kind) {
  if (kind < kHostToHost || kind > kByAddress) throw Refusal{cudaErrorInvalidMemcpyDirection};
}

DriverCopy3D driver_copy(const Copy3D& copy) {
  check_kind(copy.kind);
  if (copy.srcArray != nullptr || copy.dstArray != nullptr) throw Refusal{cudaErrorNotSupported};
  const bool rows = copy.extent.height > 1 || copy.extent.depth > 1;
  if (rows && (copy.extent.width > copy.srcPtr.pitch || copy.extent.width > copy.dstPtr.pitch)) {
    throw Refusal{cudaErrorInvalidPitchValue};
  }
  const auto type = [&](bool host) {
    return copy.kind == kByAddress ? int{kDriverUnified} : host ? kDriverHost : kDriverDevice;
  };
  const bool from_host = copy.kind == kHostToHost || copy.kind == kHostToDevice;
  const bool to_host = copy.kind == kHostToHost || copy.kind == kDeviceToHost;
  return {side(copy.srcPtr, copy.srcPos, type(from_host)),
          side(copy.dstPtr, copy.dstPos, type(to_host)), copy.extent.width, copy.extent.height,
          copy.extent.depth};
}

Copy3D row_copy(void* to, const void* from, std::size_t bytes, int kind) {
  Copy3D copy{};
  copy.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  copy.dstPtr = {to, bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return copy;
}

}  // namespace annulus::simulator::runtime
