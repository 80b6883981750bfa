#ifndef ANNULUS_DEVICE_UPLOADS_H_
#define ANNULUS_DEVICE_UPLOADS_H_

// Copies to the device that wait for themselves and for nothing else. A plain cuMemcpyHtoD waits
// for the default stream, and with it for the work of every stream that is not non-blocking.

#include <cstddef>
#include <mutex>
#include <span>

#include "abi/cuda_types.h"

namespace annulus::device {

class Context;

// Bytes of the host, and where they go in the memory that a copy fills.
struct UploadPart {
  std::size_t offset = 0;
  std::span<const std::byte> bytes;
};

// Any thread may call copy() at any time.
class Uploads {
 public:
  explicit Uploads(const Context& context) : context_(context) {}
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // Fills `bytes` bytes with the parts, and with 0 where none is. They have arrived on return, for
  // work of every stream. Requires: the context is current; no pending work uses the memory at
  // `to`; the parts are in ascending order and do not overlap.
  void copy(abi::CUdeviceptr to, std::size_t bytes, std::span<const UploadPart> parts);

 private:
  void prepare();

  const Context& context_;
  std::mutex mutex_;                // guards all below
  abi::CUstream stream_ = nullptr;  // made by the first copy, as are the others
  abi::CUevent copied_ = nullptr;
  void* staged_ = nullptr;  // page-locked, without which the driver would copy in steps of its own
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_UPLOADS_H_
