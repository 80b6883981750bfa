#ifndef ANNULUS_COMMUNICATOR_H_
#define ANNULUS_COMMUNICATOR_H_

// Ranks that meet, exchange control messages over TCP, and exchange rows over NCCL.
//
//   Rendezvous ranks = Rendezvous::meet({.address = "tcp:10.0.0.1:29500",
//                                        .rank = rank, .ranks = 4, .token = job});
//   Communicator communicator = Communicator::open(device, ranks);
//   communicator.exchange(stream, sends, receives);                  // on every rank
//
// Rendezvous. Rank 0 serves the meeting. Afterwards every rank has a TCP connection to every other
// rank, so that rank 0 may exit: the other ranks continue and report its exit. Control messages are
// small and for the host: ids, digests, positions. They are neither encrypted nor signed. The token
// separates sessions and rejects other programs, but a reader of the network can read it.
//
// Communicator. Ranks exchange rows over NCCL, one rank per process or several, each with its own
// device. If the ranks have another way to share an id, they can do without a rendezvous
// (make_communicator_id), and an engine can lend its ncclComm_t (Communicator::borrow). NCCL is
// found like the other libraries (annulus/kernels.h); for simulated devices it is the simulator's.
// Messages follow NCCL's rules ("Point-to-point communication" in its user guide): the messages of
// a pair of ranks match in the order of the calls, a group completes as a whole, and both sides
// must pass the same number of bytes.
//
// Failures. The death of a rank is not always visible: on one host, NCCL may wait for a dead peer
// forever. So every wait has a deadline, on the host and, watched by a thread of the library, on
// the device. A communicator that failed or missed a deadline is abandoned: streams continue,
// receive buffers then hold anything, and every later call throws. Runs whose messages all arrived
// before are good; the others are void (Communicator::state). Ranks with a rendezvous send each
// other their progress and the reason of a failure, so that all of them blame the same rank; the
// surviving ranks may regroup and open a new communicator. An NCCL error is not a fault of the rank
// that receives it, because NCCL also returns errors to the peers of a dead rank. The blamed ranks
// are those whose rendezvous connections have ended, else those that do not answer on the
// rendezvous by the deadline, else none. Without a rendezvous no rank is blamed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

// ---- Rendezvous

struct RendezvousOptions {
  // "tcp:HOST:PORT": rank 0 listens there; HOST is a name, an IPv4 address or "[IPv6 address]".
  // "file:PATH": rank 0 listens on a free port, writes host and port to PATH, which only this user
  // can read, and removes the file when all ranks have met or the meeting failed. The other ranks
  // wait for a file that belongs to this user, is not a link, and leads to an answering rank 0.
  std::string address;
  int rank = 0;
  int ranks = 1;      // at most 1024
  std::string token;  // 1 to 63 bytes that identify the session; equal on all its ranks
  // The IP address to listen on. Empty: HOST on rank 0, and on the other ranks the local address of
  // the connection to rank 0; 127.0.0.1 with "file:" and Rendezvous::over.
  std::string interface;
  // The time limit of the meeting, from 1 ms to a day. The call ends at most 1 s after it.
  std::chrono::milliseconds deadline{30000};
};

// An all-gather of the engine: takes this rank's bytes (the same number on every rank) and returns
// the bytes of all ranks in rank order.
using AllGather =
    std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte> own)>;

// The progress of a rank. The ranks agree on the meaning of the numbers.
struct Position {
  std::int64_t generation = 0;
  std::int64_t run = 0;
  std::int64_t round = 0;
};

// The state of another rank as this rank knows it.
struct RankState {
  int rank = 0;
  bool posted = false;                 // whether a position has arrived from it
  Position position;                   // the last position that arrived
  std::chrono::milliseconds silent{};  // time since the last position; 0 if there was none
  bool gone = false;                   // its connection has ended; a late rank is not gone
  std::string reason;                  // why the connection ended, if `gone`
};

// The result of Rendezvous::gather.
struct Gathered {
  std::vector<std::vector<std::byte>> bytes;  // by rank; empty for a rank that is gone or late
  std::vector<int> gone;                      // ranks whose connection ended before their bytes
  std::vector<int> late;                      // ranks whose bytes missed the deadline
};

// Which ranks continue after some ranks have gone or were late.
struct RegroupOptions {
  // Ranks that are excluded although they are connected, for example late ranks
  // (Communicator::blamed). A rank that finds its own number here does not continue.
  std::vector<int> without;
  // The least number of ranks that may continue. If it is 0, the remaining ranks continue only if
  // they are more than half of all ranks, or half of them including rank 0. So if a network failure
  // cuts the ranks into two parts, at most one part continues.
  int at_least = 0;
  // From 1 ms to a day. Ranks that have not called by half of it are excluded too.
  std::chrono::milliseconds deadline{5000};
};

// One rank's end of the meeting. Copies share it. The last copy closes the connections and waits up
// to half a second until sent bytes have arrived. A thread of the library moves the bytes. Any
// thread may call a function unless its comment has a restriction.
class ANNULUS_EXPORT Rendezvous {
 public:
  struct Impl;
  explicit Rendezvous(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Rendezvous(const Rendezvous&) = default;
  Rendezvous& operator=(const Rendezvous&) = default;

  // The most bytes of one rank in a call of all_gather() or gather().
  static constexpr std::size_t kMaxBytes = 65536;

  // Meets the other ranks, which all call it with the same address, number of ranks and token. A
  // single rank needs neither socket nor address. Errors name the ranks. Throws
  // Error{kInvalidArgument} for wrong options; for ranks that disagree (equal rank numbers, other
  // numbers of ranks, protocol versions or tokens); and on all ranks if one of them may not open a
  // descriptor for each other rank and eight more (ulimit -n, which the library does not change).
  // Throws Error{kFile} if the file cannot be written, or no trustworthy file appears. Throws
  // Error{kCommunication} if ranks miss the deadline or exit during the meeting, or if rank 0
  // cannot listen on the address.
  static Rendezvous meet(const RendezvousOptions& options);

  // Meets through an all-gather of the engine, which is called once with the addresses.
  // `options.address` is ignored, and the token may be empty. Throws what all_gather throws.
  static Rendezvous over(const AllGather& all_gather, const RendezvousOptions& options);

  int rank() const;
  int ranks() const;

  // Returns the bytes of all ranks in rank order. All ranks call it the same number of times; calls
  // are numbered, so a rank may be one call ahead of another. After it returns, this rank's bytes
  // reach the others even if the process dies. `deadline` is from 1 ms to a day. Only one thread at
  // a time may call it or gather(). Throws Error{kInvalidArgument} for more than kMaxBytes, a
  // wrong deadline or a second thread. Throws Error{kCommunication}, after the bytes of the other
  // ranks have arrived, if ranks have gone ("rank 2 of 4 has gone") or are late ("ranks 1 and 3 of
  // 4 have not come within 300 ms"). A call that threw counts as a call.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own,
                                                 std::chrono::milliseconds deadline) const;
  // Gathers like all_gather(), but returns the gone and late ranks instead of throwing, for ranks
  // that continue without others. The results of two ranks may differ in the bytes of a dying rank.
  Gathered gather(std::span<const std::byte> own, std::chrono::milliseconds deadline) const;

  // Sends this rank's progress to the other ranks. It does not wait, allocate, lock or throw. If
  // positions follow each other quickly, some are skipped, but never the last one. Only one thread
  // at a time may call it.
  void post(const Position& position) const noexcept;

  // The states of the other ranks, in rank order.
  std::vector<RankState> states() const;

  // 1 after the ranks have met, and one more after each regrouping. With a small
  // RegroupOptions::at_least, both parts of a divided ring may be in generation 2, so identify a
  // generation by this number and members_digest().
  std::int64_t generation() const;
  // The number of each rank in generation 1.
  const std::vector<int>& members() const;
  // A digest of members(), the same on all of them and on every machine.
  std::uint64_t members_digest() const;

  // Continues with the remaining ranks as ranks 0, 1, ... in the same order, over the existing
  // connections. All ranks that continue call it within half of the deadline and get the same
  // members. Afterwards this object is unusable, and the communicators that were opened with it are
  // abandoned. Excluded ranks are notified. Throws Error{kInvalidArgument} for wrong options and a
  // second thread. Throws Error{kCommunication} if fewer than `at_least` ranks remain, if `without`
  // has this rank, if the others have excluded this rank, or if the ranks do not agree within the
  // deadline; then it may be called again.
  Rendezvous regroup(const RegroupOptions& options = {}) const;

  // For the library's own use.

  // For the library itself.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// ---- Communicators

// The id that the ranks of one communicator share: an ncclUniqueId. The process that makes it
// serves the meeting of the ranks, so it must live until all have met.
struct CommunicatorId {
  char bytes[128] = {};
};
// Throws Error{kLibrary} if NCCL is not found, and Error{kCommunication}.
ANNULUS_EXPORT CommunicatorId make_communicator_id(const Device& device);

struct CommunicatorOptions {
  // Whether NCCL's calls block until they are done. Capturing exchanges in a graph requires it, and
  // it saves NCCL a thread for each group. But a rank whose peer has died may then wait in NCCL
  // forever, in spite of the deadline, and cannot be abandoned safely.
  bool blocking = false;
  // The time limit to queue a group, and the time limit of its messages after the device has
  // reached them, which is how late another rank may be; 0: no limit.
  std::chrono::milliseconds deadline{30000};
  // The time limit for ranks to meet, and to plan together, which compiles kernels; 0: no limit.
  std::chrono::milliseconds planning{600000};
  // The most CTAs of NCCL's kernels, from 1 to 32. Each occupies a multiprocessor, so rings leave
  // that number of multiprocessors free. For a borrowed communicator the engine has set NCCL's
  // limit, and this is only the number that rings leave free.
  int ctas = 8;
  // Whether a thread of the library watches pending runs. While there are any, it queries the
  // driver every millisecond and NCCL for errors every 10 ms. Without it, deadlines of the device
  // and NCCL's errors are checked only in Communicator::state and wait.
  bool watched = true;
};

// The state of the messages of a run.
enum class RunState : int {
  kUnderWay = 1,  // some messages have not arrived yet
  kGood = 2,      // all messages have arrived
  kVoid = 3,      // some messages will never arrive, so the outputs of the run are worthless
};
ANNULUS_EXPORT const char* to_string(RunState state);  // "under way", "good", "void"

enum class CommunicatorEventKind : int {
  kOpened = 1,
  kSlow = 2,     // messages have taken more than half of the deadline; `ranks` are late
  kGone = 3,     // the connections to `ranks` have ended
  kGivenUp = 4,  // the communicator is abandoned because of `ranks`
};
ANNULUS_EXPORT const char* to_string(CommunicatorEventKind kind);  // "opened", "slow", ...

struct CommunicatorEvent {
  std::int64_t number = 0;  // from 1
  CommunicatorEventKind kind = CommunicatorEventKind::kOpened;
  std::chrono::system_clock::time_point time;
  std::int64_t generation = 0;
  std::int64_t run = 0;  // the run that the device had reached
  std::vector<int> ranks;
  std::string text;  // a sentence
};

// Messages to and from other ranks, in device memory.
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
  // The generation and members of the rendezvous; 0 without one.
  std::int64_t generation = 0;
  std::uint64_t members_digest = 0;
  int nccl_version = 0;  // 22809 is 2.28.9
  std::string nccl;      // "2.28.9 at /usr/lib/x86_64-linux-gnu/libnccl.so.2"
};

// Device memory of Communicator::allocate. The last copy releases it, and until then it keeps the
// communicator alive. Work that uses the memory must have ended before.
class ANNULUS_EXPORT ExchangeMemory {
 public:
  struct Impl;
  explicit ExchangeMemory(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  ExchangeMemory(const ExchangeMemory&) = default;
  ExchangeMemory& operator=(const ExchangeMemory&) = default;

  void* data() const;  // null if bytes() is 0
  std::size_t bytes() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// One rank's end of a communicator. Copies share it. The last copy ends it, together with the other
// ranks of its host if there was no failure, for which it waits at most the deadline. Only one
// thread at a time may call exchange(), allocate(), give_up() or run a plan over it: a second
// thread gets Error{kInvalidArgument}. Any thread may call the other functions.
class ANNULUS_EXPORT Communicator {
 public:
  struct Impl;
  explicit Communicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;

  // Meets the other ranks, which all call it with the same id. Throws Error{kInvalidArgument} for a
  // rank outside [0, ranks), and if ranks disagree or share a device; Error{kLibrary} if NCCL is
  // missing or does not fit the device; and Error{kCommunication} if ranks miss
  // CommunicatorOptions::planning.
  static Communicator open(const Device& device, const CommunicatorId& id, int ranks, int rank,
                           const CommunicatorOptions& options = {});

  // Opens a communicator of ranks that have met; rank 0 makes the id. All of them call it.
  // Afterwards the communicator and its plans send control messages over the rendezvous, and
  // planning uses its all_gather(). If a rank fails before it calls NCCL (no NCCL, no id), every
  // rank throws the error of that rank with its number in the message. Also throws the errors of
  // Rendezvous::all_gather.
  static Communicator open(const Device& device, const Rendezvous& rendezvous,
                           const CommunicatorOptions& options = {});

  // Uses an engine's ncclComm_t, which the engine continues to own: the library never finalizes,
  // destroys, revokes or aborts it. During a call of this object no other thread may call NCCL with
  // it. At other times the engine may, so the library's thread does not: the engine must look for
  // NCCL's errors of a group on the device, or the deadline ends the wait. Throws
  // Error{kInvalidArgument} if it is null, on another device than `device`, or not ready.
  // `options.blocking` must be its blocking mode.
  static Communicator borrow(const Device& device, void* nccl_comm,
                             const CommunicatorOptions& options);
  // Borrows it with a rendezvous of the same ranks, which detects late and gone ranks.
  static Communicator borrow(const Device& device, void* nccl_comm, const Rendezvous& rendezvous,
                             const CommunicatorOptions& options);

  const CommunicatorInfo& info() const;
  int rank() const { return info().rank; }
  int ranks() const { return info().ranks; }

  // Puts one group of messages on `stream`, after the work that is queued there, and returns when
  // NCCL has queued it. That may take until the peers' hosts have called it too; it does not wait
  // for the device. Every rank calls it, with empty spans if it has no messages. Each call is a
  // run, and its number is returned. Allocates nothing itself. It can be captured only if the
  // communicator is blocking and an earlier group has connected the two ranks.
  //
  // Throws Error{kInvalidArgument} for a rank out of range or null memory, and Error{kUnsupported}
  // for a capture that is not possible, before anything is queued. Throws Error{kCommunication} if
  // NCCL fails or the deadline passes, and Error{kDevice} if the driver fails; then the
  // communicator is abandoned.
  std::int64_t exchange(void* stream, std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives) const;

  // Allocates memory for messages, for example for the workspaces of rings and joins, in steps of 2
  // MiB. NCCL 2.19 and newer allocate and register it, so that NCCL's kernels need no intermediate
  // buffers. This helps only if both ends of a message use it, so all ranks should. Other memory
  // works too. Throws Error{kOutOfMemory} and Error{kDevice}.
  ExchangeMemory allocate(std::size_t bytes) const;

  // The number of runs so far. Runs of all users of the communicator (exchanges, rings, joins) are
  // numbered from 0 in the order in which they are queued, which must be the same on all ranks.
  std::int64_t runs() const;
  // The state of a run on this rank. The run of a captured graph has no state:
  // Error{kInvalidArgument} until a later run is queued.
  RunState state(std::int64_t run) const;
  // Waits on the host until the run is good or void: for the work before it on its stream, and then
  // at most the deadline for each round.
  RunState wait(std::int64_t run) const;

  // Whether the communicator is usable. If not, `reason` is why it was abandoned, and `blamed` has
  // the ranks at fault, if any.
  bool usable() const;
  std::string reason() const;
  std::vector<int> blamed() const;

  // The newest 64 events, oldest first.
  std::vector<CommunicatorEvent> events() const;
  // The states of the other ranks, in rank order, with the progress of their devices (round -1: no
  // round of the run has begun). Empty without a rendezvous.
  std::vector<RankState> peers() const;

  // Abandons the communicator and notifies the other ranks: pending runs end without their
  // messages. A borrowed ncclComm_t is only left unused. Throws Error{kInvalidArgument} while
  // another thread is inside exchange(), which ends at its deadline.
  void give_up(const std::string& reason) const;

  // For the library's own use.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_COMMUNICATOR_H_
