#ifndef ANNULUS_RING_TRANSPORT_H_
#define ANNULUS_RING_TRANSPORT_H_

// How the messages of a round travel between ranks, as the driver of one rank uses it. The driver
// gives only its own side of each message, and no rank has an address of another rank.

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/cuda_types.h"

namespace annulus::ring {

// One side of a message: bytes on the rank's device that are sent to a peer or received from it.
struct MessagePart {
  int peer = 0;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// The transport of one rank. Only one thread at a time may use it.
class Transport {
 public:
  virtual ~Transport() = default;
  // Queues all messages of one round on `stream`, which belongs to the rank's device. The messages
  // start when the earlier work on the streams of both sides has ended. Later work on the stream
  // waits for all of the rank's messages, including sent ones. The n-th message to a peer is the
  // peer's n-th message from this rank. Allocates nothing. The parts must stay valid until the
  // exchange is queued, which may be after the return; the implementation's header states when.
  virtual void exchange(int round, std::span<const MessagePart> sends,
                        std::span<const MessagePart> receives, abi::CUstream stream) = 0;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_TRANSPORT_H_
