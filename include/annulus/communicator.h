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
// wait has a deadline, on the host and, watched by a thread of the library, on the device; and a
// communicator that failed or came too late is given up: the streams go on, buffers that were to be
// received then hold anything, and every later call throws. Runs whose messages all came before
// that are good, the others void (Communicator::state). Ranks that have met (annulus/rendezvous.h)
// tell each other how far they are and why one gave up, so that all name the same rank; those that
// are left may regroup and open a new communicator. An error of NCCL is no fault of the rank that
// gets it, since NCCL returns errors to the ranks that a dead one leaves: ranks whose connections
// on the rendezvous have ended are blamed, else those that do not answer there by the deadline,
// else no rank. Without a rendezvous no rank is blamed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  // How long a group may take to be queued, and how long its messages may take from when the
  // device has come to them, which is how much later than this one another rank may come; 0: any
  // time.
  std::chrono::milliseconds deadline{30000};
  // How long ranks may take to meet, as processes start, and to plan together, as they compile
  // kernels; 0: any time.
  std::chrono::milliseconds planning{600000};
  // The most CTAs of NCCL's kernels, from 1 to 32. Each takes a multiprocessor from the kernels
  // beside it, so rings leave as many free. A communicator of the engine's has been told by the
  // engine; here is what rings leave free.
  int ctas = 8;
  // Whether a thread of the library watches what is under way. It asks the driver once in a
  // millisecond while something is, and NCCL every 10 ms for errors that it has found, and sleeps
  // otherwise. Without it the deadline of what the device does is kept, and such errors are found,
  // only inside of Communicator::state and wait.
  bool watched = true;
};

// Whether the messages of a run have come.
enum class RunState : int {
  kUnderWay = 1,  // not all of them yet
  kGood = 2,      // all of them
  kVoid = 3,      // they will not: what the run computed, or will, is worth nothing
};
ANNULUS_EXPORT const char* to_string(RunState state);  // "under way", "good", "void"

// What has happened to a communicator.
enum class CommunicatorEventKind : int {
  kOpened = 1,
  kSlow = 2,     // messages have taken more than half of the deadline; `ranks` are late
  kGone = 3,     // the connections to `ranks` have ended
  kGivenUp = 4,  // it is given up, because of `ranks`
};
ANNULUS_EXPORT const char* to_string(CommunicatorEventKind kind);  // "opened", "slow", ...

struct CommunicatorEvent {
  std::int64_t number = 0;  // from 1
  CommunicatorEventKind kind = CommunicatorEventKind::kOpened;
  std::chrono::system_clock::time_point time;
  std::int64_t generation = 0;
  std::int64_t run = 0;  // that the device was at
  std::vector<int> ranks;
  std::string text;  // a sentence
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
  bool watched = false;
  int ctas = 0;  // CommunicatorOptions::ctas
  // The rendezvous'; 0 without one.
  std::int64_t generation = 0;
  std::uint64_t members_digest = 0;
  int nccl_version = 0;  // 22809 is 2.28.9
  std::string nccl;      // "2.28.9 at /usr/lib/x86_64-linux-gnu/libnccl.so.2"
};

// Device memory that a communicator has allocated (Communicator::allocate). Given back with the
// last copy, which keeps the communicator; work that uses it must have ended.
class ANNULUS_EXPORT ExchangeMemory {
 public:
  struct Impl;
  explicit ExchangeMemory(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move, as for Plan.
  ExchangeMemory(const ExchangeMemory&) = default;
  ExchangeMemory& operator=(const ExchangeMemory&) = default;

  void* data() const;  // null where bytes() is 0
  std::size_t bytes() const;

 private:
  std::shared_ptr<const Impl> impl_;
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
  // call it. From then on the communicator and what is planned over it talk on the rendezvous,
  // whose all_gather they use while they plan. What fails on one before NCCL is called (no NCCL, no
  // id) is thrown on every rank, with the code of that rank's error and its number in the message.
  // Also throws what Rendezvous::all_gather does.
  static Communicator open(const Device& device, const Rendezvous& rendezvous,
                           const CommunicatorOptions& options = {});

  // Uses an engine's ncclComm_t, which stays the engine's: it is never finalized, destroyed,
  // revoked or aborted here, and no other thread may call NCCL with it during a call of this
  // object. The engine may call NCCL with it at any other time, so the library's thread does not:
  // errors that NCCL finds while a group is on the device are the engine's to look for, and where
  // it does not, the deadline ends the wait. Throws Error{kInvalidArgument} where it is null, on
  // another device than `device`, or not ready; `options.blocking` has to say whether it is
  // blocking.
  static Communicator borrow(const Device& device, void* nccl_comm,
                             const CommunicatorOptions& options);
  // Borrows it with a rendezvous, whose ranks are those of the ncclComm_t, and on which they tell
  // each other who is late or has gone.
  static Communicator borrow(const Device& device, void* nccl_comm, const Rendezvous& rendezvous,
                             const CommunicatorOptions& options);

  const CommunicatorInfo& info() const;
  int rank() const { return info().rank; }
  int ranks() const { return info().ranks; }

  // Puts one group of messages on `stream`, behind the work that is there, and returns when NCCL
  // has queued it, which may take until the peers' hosts have called too; it does not wait for the
  // device. It is a run of its own, whose number it returns, on every rank: one that has no
  // messages calls it with none. Allocates nothing itself. Captured only where the communicator is
  // blocking, and not as the first group between two ranks, which connects them.
  //
  // Throws Error{kInvalidArgument} for a rank out of range or null memory, before anything is
  // queued; Error{kUnsupported} for a capture that is not possible; and Error{kCommunication} where
  // NCCL fails or the deadline passes, and Error{kDevice} where the driver does, after which the
  // communicator is given up.
  std::int64_t exchange(void* stream, std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives) const;

  // Memory for what is sent and received, as workspaces of rings and joins are: NCCL allocates it
  // and knows it, where it is 2.19 or newer, so that its kernels need no buffers of their own in
  // between. Both ends of a message gain from that, or neither, so all ranks do the same. Any other
  // memory is as right. In steps of 2 MiB. Throws Error{kOutOfMemory}, Error{kDevice}, and
  // Error{kInvalidArgument} where another thread is inside a call.
  ExchangeMemory allocate(std::size_t bytes) const;

  // Runs of everything that uses the communicator (exchanges, rings, joins) are numbered from 0, in
  // the order in which they are put on streams; all ranks make the same ones. This is how many
  // there are.
  std::int64_t runs() const;
  // Whether the messages of a run have come, as far as this rank is concerned. The run that a graph
  // was captured of has no state: Error{kInvalidArgument} until a later one is queued. Any thread.
  RunState state(std::int64_t run) const;
  // Waits on the host until the run is good or void: for what is in front of it on its stream, and
  // then no longer than the deadline for each round. Any thread.
  RunState wait(std::int64_t run) const;

  // Whether the communicator is usable; else `reason` says why it was given up, and `blamed` which
  // ranks' fault that was, if anybody's. Any thread.
  bool usable() const;
  std::string reason() const;
  std::vector<int> blamed() const;

  // The newest 64 events, in their order. Any thread.
  std::vector<CommunicatorEvent> events() const;
  // What is known of each other rank, in their order: how far its device is (round -1: it has come
  // to no round of that run yet), whether it has gone. Empty without a rendezvous. Any thread.
  std::vector<RankState> peers() const;

  // Gives it up, and tells the other ranks: what is under way ends without its messages. A
  // communicator of the engine's is only left alone. Throws Error{kInvalidArgument} while another
  // thread is inside exchange(), which ends by itself at its deadline.
  void give_up(const std::string& reason) const;

  // For the library itself.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_COMMUNICATOR_H_
