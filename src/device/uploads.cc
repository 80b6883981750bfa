#include "device/uploads.h"

#include <algorithm>
#include <cstring>

#include "device/context.h"

namespace annulus::device {
namespace {

constexpr std::size_t kStagedBytes = std::size_t{256} << 10;

}  // namespace

Uploads::~Uploads() {
  const QuietScope scope(context_);
  if (!scope.active()) return;
  const abi::CudaTable& cuda = context_.table();
  if (copied_ != nullptr) cuda.event_destroy(copied_);
  if (stream_ != nullptr) cuda.stream_destroy(stream_);
  if (staged_ != nullptr) cuda.mem_free_host(staged_);
}

void Uploads::prepare() {
  const abi::CudaTable& cuda = context_.table();
  if (stream_ == nullptr) {
    abi::check(cuda, cuda.stream_create(&stream_, abi::kStreamNonBlocking), "cuStreamCreate");
  }
  if (copied_ == nullptr) {
    abi::check(cuda, cuda.event_create(&copied_, abi::kEventDisableTiming), "cuEventCreate");
  }
  if (staged_ == nullptr) {
    abi::check(cuda, cuda.mem_alloc_host(&staged_, kStagedBytes), "cuMemAllocHost");
  }
}

void Uploads::copy(abi::CUdeviceptr to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  prepare();
  const abi::CudaTable& cuda = context_.table();
  const auto* source = static_cast<const char*>(from);
  for (std::size_t done = 0; done < bytes; done += kStagedBytes) {
    const std::size_t part = std::min(kStagedBytes, bytes - done);
    std::memcpy(staged_, source + done, part);
    // The next copy, of whatever thread, overwrites what this one reads.
    const char* call = "cuMemcpyHtoDAsync";
    abi::CUresult code = cuda.memcpy_htod_async(to + done, staged_, part, stream_);
    if (code == abi::kCudaSuccess) {
      call = "cuEventRecord";
      code = cuda.event_record(copied_, stream_);
    }
    if (code == abi::kCudaSuccess) {
      call = "cuEventSynchronize";
      code = cuda.event_synchronize(copied_);
    }
    // Where it is not known whether the copy has ended, its source is not used again and not given
    // back: it goes with the context.
    if (code != abi::kCudaSuccess && cuda.stream_synchronize(stream_) != abi::kCudaSuccess) {
      staged_ = nullptr;
    }
    abi::check(cuda, code, call);
  }
}

}  // namespace annulus::device
