#ifndef ANNULUS_DEVICE_CAPTURE_MODE_H_
#define ANNULUS_DEVICE_CAPTURE_MODE_H_

#include "abi/cuda_table.h"

namespace annulus::device {

// Allows this thread to query events during a scope, even if a thread captures a stream in the
// global mode. Without it the driver refuses the query and invalidates that thread's capture (CUDA
// driver API, cuThreadExchangeStreamCaptureMode).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const abi::CudaTable& table) noexcept : table_(table) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() noexcept {
    if (table_.thread_exchange_capture_mode != nullptr) table_.thread_exchange_capture_mode(&mode_);
  }

  const abi::CudaTable& table_;
  int mode_ = abi::kCaptureRelaxed;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_CAPTURE_MODE_H_
