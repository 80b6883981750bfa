#ifndef ANNULUS_DEVICE_UPLOADS_H_
#define ANNULUS_DEVICE_UPLOADS_H_

// Copies to the device that wait only for themselves. A plain cuMemcpyHtoD waits for the default
// stream, and so for the work of every blocking stream.

#include <cstddef>
#include <mutex>
#include <span>

#include "abi/cuda_types.h"

namespace annulus::device {

class Context;

// Bytes of the host, and their place in the memory that a copy fills.
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

  // Fills `bytes` bytes with the parts, and with 0 between them. On return they have arrived, for
  // work on any stream. Requires: the context is current; no pending work uses the memory at `to`;
  // the parts are in ascending order and do not overlap.
  void copy(abi::CUdeviceptr to, std::size_t bytes, std::span<const UploadPart> parts);

 private:
  void prepare();

  const Context& context_;
  std::mutex mutex_;                // guards all members below
  abi::CUstream stream_ = nullptr;  // the first copy creates these three
  abi::CUevent copied_ = nullptr;
  // page-locked; from other memory, the driver would copy in several steps
  void* staged_ = nullptr;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_UPLOADS_H_
