#include "exchange/memory.h"

#include "abi/check.h"
#include "base/fail.h"

namespace annulus::exchange {

Memory::Memory(std::shared_ptr<Rank> rank, std::size_t bytes)
    : rank_(std::move(rank)), bytes_(bytes) {
  if (bytes == 0) return;
  const device::ContextScope scope(*rank_->context());
  const abi::NcclTable& nccl = rank_->nccl().table;
  of_nccl_ = nccl.mem_alloc != nullptr && nccl.mem_free != nullptr;
  if (!of_nccl_) {
    const abi::CudaTable& cuda = rank_->context()->table();
    abi::CUdeviceptr address = 0;
    abi::check(cuda, cuda.mem_alloc(&address, bytes), "cuMemAlloc");
    data_ = reinterpret_cast<void*>(address);
    return;
  }
  const abi::NcclResult code = nccl.mem_alloc(&data_, bytes);
  if (code != abi::kNcclSuccess) {
    base::fail(ErrorCode::kOutOfMemory, "{} bytes for exchanges: {}", bytes,
               text_of(nccl, code, "ncclMemAlloc"));
  }
  try {
    registered_ = rank_->register_memory(data_, bytes);
  } catch (...) {
    nccl.mem_free(data_);
    throw;
  }
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  const device::QuietScope scope(*rank_->context());
  if (!scope.active()) return;
  if (registered_ != nullptr) rank_->deregister_memory(registered_);
  if (of_nccl_) {
    rank_->nccl().table.mem_free(data_);
  } else {
    rank_->context()->table().mem_free(reinterpret_cast<abi::CUdeviceptr>(data_));
  }
}

}  // namespace annulus::exchange
