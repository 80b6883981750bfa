#ifndef ANNULUS_SIMULATOR_NCCL_COMMUNICATOR_H_
#define ANNULUS_SIMULATOR_NCCL_COMMUNICATOR_H_

// A communicator: its state, which ncclCommGetAsyncError returns, and the numbers of its messages.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "abi/nccl_types.h"
#include "simulator/driver/for_libraries.h"
#include "simulator/driver/objects/handles.h"
#include "simulator/nccl/notice.h"
#include "simulator/nccl/wire.h"

namespace annulus::simulator::nccl {

class Communicator;
using CommunicatorPointer = std::shared_ptr<Communicator>;

// The work of one group on one stream of a communicator.
struct GroupWork {
  std::shared_ptr<driver::Stream> stream;
  driver::Work work;
  // The last work of the stream when the group was called. The group has to be the first work after
  // it.
  driver::ItemPointer behind;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // The place where the ranks meet, and this rank's number there. The thread that meets calls the
  // function, which may wait for other ranks of an older communicator. It returns no value if this
  // rank is not in the new communicator.
  struct Seat {
    std::string place;
    int ranks = 0;
    int rank = 0;
  };
  using FindSeat = std::function<abi::NcclResult(Seat* seat, const std::atomic<bool>& stop)>;

  Communicator(std::shared_ptr<driver::Context> context, int ranks, int rank, bool blocking);
  ~Communicator();

  // Starts to meet the other ranks.
  void start(FindSeat find_seat);

  const std::shared_ptr<driver::Context>& context() const { return context_; }
  bool blocking() const { return blocking_; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  Wire& wire() { return *wire_; }
  Inbox& inbox() { return *inbox_; }
  const std::string& place() const { return place_; }

  // The state of the last operation: kNcclInProgress, or its code. Every call makes progress.
  abi::NcclResult status();
  // Waits for the operation in progress.
  abi::NcclResult finish();
  // The code with which a call that needs a ready communicator is refused, or kNcclSuccess.
  abi::NcclResult refusal();

  // Queues the works when all `peers` have been met. The first group between two ranks connects
  // them.
  void enqueue(std::vector<GroupWork> works, const std::vector<int>& peers);

  // Ends the connections to `peer`, or to all ranks of other processes if it is -1. Returns whether
  // there was one.
  bool cut(int peer);

  // Ends the work under way. The streams continue with whatever the buffers hold.
  void give_up();
  abi::NcclResult revoke();
  abi::NcclResult finalize();
  bool finalized() const { return finalized_; }
  // Whether work in progress has to end without its messages.
  bool stopped() const { return stop_; }
  const std::atomic<bool>& stop() const { return stop_; }

  // The number of the next message to or from a rank, or of the next collective call.
  std::uint64_t next_sent(int peer) { return sent_[static_cast<std::size_t>(peer)]++; }
  std::uint64_t next_received(int peer) { return received_[static_cast<std::size_t>(peer)]++; }
  std::uint64_t next_collective() { return collectives_++; }
  std::uint64_t next_child() { return children_++; }

  // Counts the threads that are inside a call of this communicator.
  std::atomic<int> inside{0};

 private:
  enum class Phase { kMeeting, kReady, kQueueing, kFinalizing, kRevoked, kAborted, kFailed };
  void meet(const FindSeat& find_seat);
  bool advance();  // returns true if nothing is in progress any more; requires: mutex_ is held
  void queue_works();
  bool peers_came();
  bool all_said_bye();
  // The rank on another host whose connection was lost, or -1. As in NCCL, whose network reports
  // such losses, the loss of a rank on this host is not reported.
  int lost_remote_rank();

  const std::shared_ptr<driver::Context> context_;
  const bool blocking_;
  int ranks_;
  int rank_;
  std::string place_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<Wire> wire_;
  std::thread meeting_;
  std::shared_ptr<std::atomic<bool>> serving_ends_ = std::make_shared<std::atomic<bool>>(false);
  std::thread serving_;  // runs work that other processes wait for
  std::atomic<bool> stop_{false};
  std::atomic<bool> finalized_{false};

  std::mutex mutex_;  // guards the members below
  Phase phase_ = Phase::kMeeting;
  abi::NcclResult failure_ = abi::kNcclSuccess;
  bool met_ = false;  // meet() has ended
  abi::NcclResult met_with_ = abi::kNcclSuccess;
  unsigned polls_ = 0;  // the number of further calls of status() that return "in progress"
  std::vector<GroupWork> works_;
  std::vector<int> peers_;
  std::vector<bool> connected_;
  std::vector<driver::ItemPointer> queued_;  // items that may not have ended

  std::vector<std::uint64_t> sent_, received_;
  std::uint64_t collectives_ = 0;
  std::uint64_t children_ = 0;
};

// All communicators of the process, by their handles.
driver::Handles<Communicator, abi::NcclComm>& communicators();

// A hash of the host of this process: from NCCL_HOSTID, or from the machine's name.
std::uint64_t host_hash();

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_COMMUNICATOR_H_
