#ifndef ANNULUS_RING_TRANSPORT_H_
#define ANNULUS_RING_TRANSPORT_H_

// How the messages of a round get from rank to rank, as the driver of one rank sees it: it names
// its own side of each message, and no rank knows an address of another.

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/cuda_types.h"

namespace annulus::ring {

// One side of a message: bytes of the rank's device that go to a peer, or come from it.
struct MessagePart {
  int peer = 0;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// The end of one rank. Only one thread at a time uses it.
class Transport {
 public:
  virtual ~Transport() = default;
  // Queues all messages of one round on `stream`, of the rank's device: they start when the work
  // before them on the streams of both sides has ended, and the work behind them waits for all of
  // the rank's messages, sent ones too. The n-th message to a peer is the n-th from this rank on
  // the peer's side. Allocates nothing. The parts must stay until the exchange is queued, which it
  // need not be on return: Transport implementations say when.
  virtual void exchange(int round, std::span<const MessagePart> sends,
                        std::span<const MessagePart> receives, abi::CUstream stream) = 0;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_TRANSPORT_H_
