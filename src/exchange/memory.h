#ifndef ANNULUS_EXCHANGE_MEMORY_H_
#define ANNULUS_EXCHANGE_MEMORY_H_

// Device memory that NCCL allocates and has registered, so that messages to and from it need no
// copy through NCCL's internal buffers ("User Buffer Registration" in its user guide). If NCCL is
// older than 2.19, the driver allocates the memory.

#include <cstddef>
#include <memory>

#include "exchange/rank.h"

namespace annulus::exchange {

class Memory {
 public:
  // Throws Error{kOutOfMemory} or Error{kCommunication}.
  Memory(std::shared_ptr<Rank> rank, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Rank> rank_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool of_nccl_ = false;
  void* registered_ = nullptr;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MEMORY_H_
