#include "device/uploads.h"

#include <algorithm>
#include <cstring>

#include "device/context.h"

namespace annulus::device {
namespace {

constexpr std::size_t kStagedBytes = std::size_t{256} << 10;

// Writes the bytes from `begin` to `end` of the filled memory. Drops the parts that end before
// `end`.
void stage(std::size_t begin, std::size_t end, std::span<const UploadPart>* parts,
           std::byte* staged) {
  std::size_t done = begin;
  for (; !parts->empty(); *parts = parts->subspan(1)) {
    const UploadPart& part = parts->front();
    const std::size_t part_end = part.offset + part.bytes.size();
    const std::size_t from = std::clamp(part.offset, done, end);
    const std::size_t to = std::clamp(part_end, from, end);
    std::memset(staged + (done - begin), 0, from - done);
    if (from < to) {
      std::memcpy(staged + (from - begin), part.bytes.data() + (from - part.offset), to - from);
    }
    done = to;
    if (part_end > end) return;
  }
  std::memset(staged + (done - begin), 0, end - done);
}

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

void Uploads::copy(abi::CUdeviceptr to, std::size_t bytes, std::span<const UploadPart> parts) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  prepare();
  const abi::CudaTable& cuda = context_.table();
  for (std::size_t done = 0; done < bytes; done += kStagedBytes) {
    const std::size_t part_bytes = std::min(kStagedBytes, bytes - done);
    stage(done, done + part_bytes, &parts, static_cast<std::byte*>(staged_));
    // The next copy, on any thread, overwrites the bytes that this copy reads.
    const char* call = "cuMemcpyHtoDAsync";
    abi::CUresult code = cuda.memcpy_htod_async(to + done, staged_, part_bytes, stream_);
    if (code == abi::kCudaSuccess) {
      call = "cuEventRecord";
      code = cuda.event_record(copied_, stream_);
    }
    if (code == abi::kCudaSuccess) {
      call = "cuEventSynchronize";
      code = cuda.event_synchronize(copied_);
    }
    // If it is not known whether the copy has ended, its source memory is neither used again nor
    // freed. It is released with the context.
    if (code != abi::kCudaSuccess && cuda.stream_synchronize(stream_) != abi::kCudaSuccess) {
      staged_ = nullptr;
    }
    abi::check(cuda, code, call);
  }
}

}  // namespace annulus::device
