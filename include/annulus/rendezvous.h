#ifndef ANNULUS_RENDEZVOUS_H_
#define ANNULUS_RENDEZVOUS_H_

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

#include "annulus/language.h"
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

}  // namespace annulus::inline v0

#endif  // ANNULUS_RENDEZVOUS_H_
