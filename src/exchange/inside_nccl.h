#ifndef ANNULUS_EXCHANGE_INSIDE_NCCL_H_
#define ANNULUS_EXCHANGE_INSIDE_NCCL_H_

#include <atomic>
#include <mutex>
#include <thread>

namespace annulus::exchange {

// Ensures that only one thread at a time is inside NCCL: a thread of the caller, or the thread that
// gives the communicator up.
class InsideNccl {
 public:
  explicit InsideNccl(std::atomic<bool>* inside) : inside_(inside) {
    while (inside_->exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  // Does not wait: if another thread is inside, entered() is false.
  InsideNccl(std::atomic<bool>* inside, std::try_to_lock_t)
      : inside_(inside->exchange(true, std::memory_order_acquire) ? nullptr : inside) {}
  ~InsideNccl() {
    if (inside_ != nullptr) inside_->store(false, std::memory_order_release);
  }
  InsideNccl(const InsideNccl&) = delete;
  InsideNccl& operator=(const InsideNccl&) = delete;
  bool entered() const { return inside_ != nullptr; }

 private:
  std::atomic<bool>* inside_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_INSIDE_NCCL_H_
