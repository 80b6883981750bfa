#ifndef ANNULUS_COMMUNICATOR_H_
#define ANNULUS_COMMUNICATOR_H_

// Ranks that exchange rows over NCCL: one rank for each process, or several in one, each on a
// device of its own.
//
//   Rendezvous meeting = Rendezvous::meet({.address = "file:/scratch/job", ...});
//   Communicator communicator = Communicator::open(device, meeting);
//   communicator.exchange(stream, sends, receives);                  // on every rank
//
// Where the ranks have another way to give each other an id, they use that (make_communicator_id).
// An engine that has an ncclComm_t lends it instead (Communicator::borrow).
//
// NCCL is found as the other libraries are (annulus/installation.h): for simulated devices it is
// the simulator's. Messages and their order are NCCL's ("Point-to-point communication" in its
// user guide): those of a pair of ranks are matched in the order of the calls, a group ends as a
// whole, and both sides have to name the same number of bytes.
//
// What dies does not always tell: on one host a rank whose peer has died waits for ever. So every
// wait of the host has a deadline, and a communicator that failed or came too late is given up: the
// streams go on, buffers that were to be received then hold anything, and every later call throws.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "annulus/device.h"
#include "annulus/rendezvous.h"

namespace annulus::inline v0 {

// What the ranks of one communicator share: an ncclUniqueId. The process that makes one serves the
// others when they meet, so it must live until all have.
struct CommunicatorId {
  char bytes[128] = {};
};
// Throws Error{kLibrary} where NCCL is not found, and Error{kCommunication}.
ANNULUS_EXPORT CommunicatorId make_communicator_id(const Device& device);

struct CommunicatorOptions {
  // Whether NCCL's calls wait until they are done. Exchanges that are captured in a graph need
  // that, and it saves NCCL a thread for each group; but then a rank whose peer has died may wait
  // in NCCL for ever, whatever the deadline, and cannot be given up safely.
  bool blocking = false;
  // How long a group may take to be queued; 0: any time.
  std::chrono::milliseconds deadline{30000};
  // How long ranks may take to meet, as processes start, and to plan together, as they compile
  // kernels; 0: any time.
  std::chrono::milliseconds planning{600000};
};

// Bytes that go to another rank, and bytes that come from one. Device memory.
struct SentBytes {
  int to = 0;
  const void* from = nullptr;
  std::size_t bytes = 0;
};
struct ReceivedBytes {
  int from = 0;
  void* to = nullptr;
  std::size_t bytes = 0;
};

struct CommunicatorInfo {
  int rank = 0;
  int ranks = 0;
  bool blocking = false;
  bool borrowed = false;
  bool simulated = false;
  int nccl_version = 0;  // 22809 is 2.28.9
  std::string nccl;      // "2.28.9 at /usr/lib/x86_64-linux-gnu/libnccl.so.2"
};

// A rank's end of a communicator. Copies share it, and the last one ends it: where all is well
// together with the others of its host, for which it waits no longer than the deadline. One thread
// at a time may call it; another one that comes meanwhile gets Error{kInvalidArgument}.
class ANNULUS_EXPORT Communicator {
 public:
  struct Impl;
  explicit Communicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  // No move, as for Plan.
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;

  // Meets the other ranks, which all call it with the same id. Throws Error{kInvalidArgument} for
  // a rank outside [0, ranks), and where ranks differ in what they brought or share a device,
  // Error{kLibrary} for an NCCL that is missing or does not go with the device, and
  // Error{kCommunication} where the others have not come within CommunicatorOptions::planning.
  static Communicator open(const Device& device, const CommunicatorId& id, int ranks, int rank,
                           const CommunicatorOptions& options = {});

  // The same among ranks that have met: rank 0 makes the id, and the others get it. All of them
  // call it. What fails on one before NCCL is called (no NCCL, no id) is thrown on every rank,
  // with the code of that rank's error and its number in the message. Also throws what
  // Rendezvous::all_gather does.
  static Communicator open(const Device& device, const Rendezvous& rendezvous,
                           const CommunicatorOptions& options = {});

  // Uses an engine's ncclComm_t, which stays the engine's: it is never finalized, destroyed,
  // revoked or aborted here, and no other thread may call NCCL with it during a call of this
  // object. Throws Error{kInvalidArgument} where it is null, on another device than `device`, or
  // not ready; `options.blocking` has to say whether it is blocking.
  static Communicator borrow(const Device& device, void* nccl_comm,
                             const CommunicatorOptions& options);

  const CommunicatorInfo& info() const;
  int rank() const { return info().rank; }
  int ranks() const { return info().ranks; }

  // Puts one group of messages on `stream`, behind the work that is there, and returns when NCCL
  // has queued it, which may take until the peers' hosts have called too; it does not wait for the
  // device. Allocates nothing itself. Captured only where the communicator is blocking, and not as
  // the first group between two ranks, which connects them.
  //
  // Throws Error{kInvalidArgument} for a rank out of range or null memory, before anything is
  // queued; Error{kUnsupported} for a capture that is not possible; and Error{kCommunication} where
  // NCCL fails or the deadline passes, after which the communicator is given up.
  void exchange(void* stream, std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives) const;

  // Whether the communicator is usable; else `reason` says why it was given up.
  bool usable() const;
  std::string reason() const;

  // Gives it up: what is under way ends without its messages. A communicator of the engine's is
  // only left alone. Throws Error{kInvalidArgument} while another thread is inside exchange(),
  // which ends by itself at its deadline.
  void give_up(const std::string& reason) const;

  // For the library itself.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_COMMUNICATOR_H_
