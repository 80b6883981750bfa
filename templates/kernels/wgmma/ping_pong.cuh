#ifndef ANNULUS_KERNELS_WGMMA_PING_PONG_CUH_
#define ANNULUS_KERNELS_WGMMA_PING_PONG_CUH_

#include "ptx/warpgroup.cuh"

namespace annulus::kernels {

// Turns of kConsumers warpgroups at starting products, so that one computes probabilities while
// another multiplies. A consumer waits for its turn before it starts the products of a step, except
// the first step of a work, and passes the turn to the next consumer when they are started. All
// consumers have the same number of steps, because they share K and V. Without kTurns, or with one
// consumer, nothing happens.
template <int kConsumers, bool kTurns>
class PingPong {
  enum : int {
    kTakes = kTurns && kConsumers > 1,
    kThreads = 256,    // two warpgroups: one waits for its turn, the other passes it on
    kFirstBarrier = 1  // + the number of the consumer
  };

 public:
  explicit __device__ __forceinline__ PingPong(unsigned consumer) : consumer_(consumer) {}

  // It is called before the first work, and gives consumer 0 the first turn.
  __device__ __forceinline__ void begin() const {
    if (kTakes && consumer_ == kConsumers - 1) announce(0);
  }
  __device__ __forceinline__ void take() const {
    if constexpr (kTakes) ptx::sync_threads(kFirstBarrier + static_cast<int>(consumer_), kThreads);
  }
  __device__ __forceinline__ void hand_on() const {
    if constexpr (kTakes) announce(consumer_ + 1 == kConsumers ? 0 : consumer_ + 1);
  }
  // It is called after the last work, and waits for the turn that the last consumer passed on at
  // the end, so that no named barrier is left half full at exit.
  __device__ __forceinline__ void end() const {
    if (kTakes && consumer_ == 0) ptx::sync_threads(kFirstBarrier, kThreads);
  }

 private:
  __device__ __forceinline__ void announce(unsigned consumer) const {
    ptx::announce_threads(kFirstBarrier + static_cast<int>(consumer), kThreads);
  }

  const unsigned consumer_;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PING_PONG_CUH_
