#ifndef ANNULUS_COMMUNICATOR_H_
#define ANNULUS_COMMUNICATOR_H_

// How the ranks of a ring find each other, and the control channel between them afterwards.
//
//   Rendezvous ranks = Rendezvous::meet({.address = "tcp:10.0.0.1:29500",
//                                        .rank = rank, .ranks = 4, .token = job});
//   Communicator communicator = Communicator::open(device, ranks);
//
// Rank 0 serves the meeting. Afterwards every rank has a TCP connection to every other one, so
// that whoever served may die: the others go on and say that it has gone.
//
// What is sent is small and for the host: ids, digests, positions. It is neither encrypted nor
// signed. The token keeps sessions apart and strangers out; whoever can listen in on the network
// can read it.

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

struct RendezvousOptions {
  // "tcp:HOST:PORT": rank 0 listens there; HOST is a name, an IPv4 address or "[IPv6 address]".
  // "file:PATH": rank 0 listens on a port that it is given, writes host and port to PATH, which
  // only this user can read, and removes it when all have met or the meeting failed. The others
  // wait for a file that belongs to this user, is no link, and whose rank 0 answers.
  std::string address;
  int rank = 0;
  int ranks = 1;  // at most 1024
  // 1 to 63 bytes that all ranks of the session bring, and nobody else does.
  std::string token;
  // The IP address to listen on. Empty: on rank 0 that of HOST, on the others the one from which
  // they reach rank 0, and 127.0.0.1 with "file:" and Rendezvous::over.
  std::string interface;
  // How long the meeting may take, from 1 ms to a day; the call ends at most 1 s after it.
  std::chrono::milliseconds deadline{30000};
};

// An all-gather of the engine's: takes bytes, as many on every rank, and returns those of all ranks
// in their order.
using AllGather =
    std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte> own)>;

// How far a rank has come; the numbers mean what the ranks agree on.
struct Position {
  std::int64_t generation = 0;
  std::int64_t run = 0;
  std::int64_t round = 0;
};

// What is known of another rank.
struct RankState {
  int rank = 0;
  bool posted = false;                 // whether a position has come from it
  Position position;                   // the last one that has come
  std::chrono::milliseconds silent{};  // since then; 0 where none has
  bool gone = false;   // its connection has ended; never true again of one that is merely late
  std::string reason;  // why, where it has gone
};

// What came in a call of Rendezvous::gather.
struct Gathered {
  std::vector<std::vector<std::byte>> bytes;  // by rank; empty for a rank that is gone or late
  std::vector<int> gone;                      // connection ended before their bytes came
  std::vector<int> late;                      // had not come at the deadline
};

// Who goes on after ranks have gone or were late.
struct RegroupOptions {
  // Ranks that are left out although they are there, as those that were late
  // (Communicator::blamed). A rank that finds its own number here does not go on.
  std::vector<int> without;
  // The least number of ranks that may go on. If it is 0, the ranks that are left go on only if
  // they are more than half of all ranks, or half of them with rank 0 among them. Then at most one
  // of the two parts goes on if a ring was cut into two.
  int at_least = 0;
  // From 1 ms to a day. Ranks that have not come by half of it are left out too.
  std::chrono::milliseconds deadline{5000};
};

// A rank's end of the meeting. Copies share it; the last one ends its connections, for which it
// waits up to half a second until what was sent has arrived. Its own thread moves the bytes.
class ANNULUS_EXPORT Rendezvous {
 public:
  struct Impl;
  explicit Rendezvous(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  // No move, as for Plan.
  Rendezvous(const Rendezvous&) = default;
  Rendezvous& operator=(const Rendezvous&) = default;

  // The most bytes of one rank in a call of all_gather and gather.
  static constexpr std::size_t kMostBytes = 65536;

  // Meets the other ranks, which all call it with the same address, ranks and token. One rank alone
  // needs no socket and no address. Throws Error{kInvalidArgument} for wrong options, and where
  // ranks differ: two with one number, another number of ranks, another version of the protocol,
  // another token; on all ranks where one may not open as many descriptors as it has connections,
  // one to each other rank and eight besides (ulimit -n; the library leaves the limit as it is);
  // Error{kFile} where the file cannot be written, or none came that can be
  // trusted; and Error{kCommunication} where ranks have not come within the deadline or have gone
  // meanwhile, or the address cannot be listened on. The message names the ranks.
  static Rendezvous meet(const RendezvousOptions& options);

  // The same where the engine has an all-gather already: addresses travel through it, in one
  // call. `options.address` is not used, and the token may be empty. What all_gather throws passes
  // through.
  static Rendezvous over(const AllGather& all_gather, const RendezvousOptions& options);

  int rank() const;
  int ranks() const;

  // Gives every rank the bytes of all, in the order of the ranks. All ranks call it equally often;
  // calls are numbered, so a rank may be a call ahead of another. Where it returns, its own bytes
  // reach the others even if this process dies then. `deadline` is from 1 ms to a day.
  // One thread at a time calls it or gather. Throws Error{kInvalidArgument} for more than
  // kMostBytes, a wrong deadline or a second thread; Error{kCommunication} that names the ranks
  // that have gone ("rank 2 of 4 has gone") or are late ("ranks 1 and 3 of 4 have not come within
  // 300 ms"), after the others have come. A call that threw counts as one.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own,
                                                 std::chrono::milliseconds deadline) const;
  // Gathers as all_gather does, and says in its result who has gone or is late where that throws.
  // Ranks that go on without others use it: ranks may differ in whether they still heard of one
  // that was dying.
  Gathered gather(std::span<const std::byte> own, std::chrono::milliseconds deadline) const;

  // Tells the other ranks how far this one has come. Neither waits nor allocates nor takes a lock,
  // and throws nothing; where positions follow each other quickly, some are left out, never the
  // last one. One thread at a time.
  void post(const Position& position) const noexcept;

  // What is known of each other rank, in their order. Any thread.
  std::vector<RankState> states() const;

  // 1 where the ranks have met, and one more each time that they have regrouped. Two parts of a
  // ring that was cut may both be in generation 2 (RegroupOptions::at_least): a generation is this
  // number and members_digest().
  std::int64_t generation() const;
  // The number that each rank had in generation 1.
  const std::vector<int>& members() const;
  // A digest of members(), the same on all of them and on every machine.
  std::uint64_t members_digest() const;

  // Goes on with those that are left, as ranks 0, 1, ... in the same order, over the connections
  // that they have. All that are to go on call it, within half of the deadline, and get the same
  // members. This object is of no use afterwards, and communicators that were opened over it are
  // given up. Ranks that are left out find that the others go on without them. Throws
  // Error{kInvalidArgument} for wrong options and a second thread, and Error{kCommunication} if
  // fewer than `at_least` are left, if `without` names this rank, if the others have left this rank
  // out, or if not all agree within the deadline; it may be tried again then.
  Rendezvous regroup(const RegroupOptions& options = {}) const;

  // For the library itself.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

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
// NCCL is found as the other libraries are (annulus/kernels.h): for simulated devices it is
// the simulator's. Messages and their order are NCCL's ("Point-to-point communication" in its
// user guide): those of a pair of ranks are matched in the order of the calls, a group ends as a
// whole, and both sides have to name the same number of bytes.
//
// What dies does not always tell: on one host a rank whose peer has died waits for ever. So every
// wait has a deadline, on the host and, watched by a thread of the library, on the device; and a
// communicator that failed or came too late is given up: the streams go on, buffers that were to be
// received then hold anything, and every later call throws. Runs whose messages all came before
// that are good, the others void (Communicator::state). Ranks that have met
// (annulus/communicator.h) tell each other how far they are and why one gave up, so that all name
// the same rank; those that are left may regroup and open a new communicator. An error of NCCL is
// no fault of the rank that gets it, since NCCL returns errors to the ranks that a dead one leaves:
// ranks whose connections on the rendezvous have ended are blamed, else those that do not answer
// there by the deadline, else no rank. Without a rendezvous no rank is blamed.

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
