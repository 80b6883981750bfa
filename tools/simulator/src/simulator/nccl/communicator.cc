#include "simulator/nccl/communicator.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/env.h"
#include "base/hash.h"
#include "simulator/nccl/entries.h"
#include "simulator/nccl/options.h"

namespace annulus::simulator::nccl {

using abi::NcclResult;
using Kind = Notice::Kind;

driver::Handles<Communicator, abi::NcclComm>& communicators() {
  static auto* const only = new driver::Handles<Communicator, abi::NcclComm>;
  return *only;
}

std::uint64_t host_hash() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  const std::string given = base::read_environment().nccl_host_id;
  const base::Digest digest = base::digest(given.empty() ? std::string(name) : given);
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.bytes.data(), sizeof(hash));
  return hash;
}

Communicator::Communicator(std::shared_ptr<driver::Context> context, int ranks, int rank,
                           bool blocking)
    : context_(std::move(context)),
      blocking_(blocking),
      ranks_(ranks),
      rank_(rank),
      inbox_(std::make_shared<Inbox>([] { driver::notify_meetings(); })) {}

Communicator::~Communicator() {
  stop_ = true;
  inbox_->wake();
  if (meeting_.joinable()) meeting_.join();
  *serving_ends_ = true;
  driver::notify_meetings();
  if (!serving_.joinable()) return;
  // The work that held the last reference to the communicator may have ended on that thread.
  if (serving_.get_id() == std::this_thread::get_id()) {
    serving_.detach();
  } else {
    serving_.join();
  }
}

void Communicator::start(FindSeat find_seat) {
  polls_ = draw(options().polls);
  meeting_ = std::thread([this, find_seat = std::move(find_seat)] { meet(find_seat); });
}

void Communicator::meet(const FindSeat& find_seat) {
  Seat seat;
  NcclResult code = find_seat(&seat, stop_);
  std::unique_ptr<Wire> wire;
  if (code == abi::kNcclSuccess && !seat.place.empty()) {
    const Member own = {seat.ranks,
                        seat.rank,
                        static_cast<std::int32_t>(options().version),
                        driver::device_of(*context_),
                        host_hash(),
                        getpid()};
    std::string problem;
    wire = Wire::meet(seat.place, own, inbox_, stop_, &code, &problem);
    if (!problem.empty()) {
      say(code, fmt::format("rank {} of {}: {}", seat.rank, seat.ranks, problem));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    ranks_ = seat.ranks;
    rank_ = seat.rank;
    place_ = seat.place;
    wire_ = std::move(wire);
    const auto ranks = static_cast<std::size_t>(std::max(0, ranks_));
    connected_.assign(ranks, false);
    sent_.assign(ranks, 0);
    received_.assign(ranks, 0);
    if (wire_ != nullptr) {
      for (const Member& member : wire_->members()) {
        if (member.process != getpid() || member.rank == rank_) continue;
        driver::link_with_device(*context_, member.device);
      }
      if (wire_->remote()) {
        serving_ = std::thread(
            [context = context_, ends = serving_ends_] { driver::serve(*context, *ends); });
      }
    }
    met_ = true;
    met_with_ = code;
  }
  inbox_->wake();
}

int Communicator::lost_remote_rank() {
  if (wire_ == nullptr) return -1;
  for (const int rank : inbox_->lost()) {
    if (!inbox_->has(Kind::kBye, rank, Channel::kPairs, 0) &&
        wire_->members()[static_cast<std::size_t>(rank)].host != wire_->own().host) {
      return rank;
    }
  }
  return -1;
}

bool Communicator::peers_came() {
  return std::all_of(peers_.begin(), peers_.end(), [&](int peer) {
    return connected_[static_cast<std::size_t>(peer)] ||
           inbox_->has(Kind::kConnect, peer, Channel::kPairs, 0);
  });
}

bool Communicator::all_said_bye() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const Member& member = wire_->members()[static_cast<std::size_t>(rank)];
    if (rank == rank_ || member.host != wire_->own().host) continue;
    if (!inbox_->has(Kind::kBye, rank, Channel::kPairs, 0)) return false;
  }
  return true;
}

void Communicator::queue_works() {
  for (const int peer : peers_) connected_[static_cast<std::size_t>(peer)] = true;
  std::erase_if(queued_, [](const driver::ItemPointer& item) { return driver::done(item); });
  for (GroupWork& work : works_) {
    if (!blocking_ && driver::last_item(*work.stream) != work.behind) {
      Fault fault;
      fault.kind = FaultKind::kEarlyWork;
      fault.detail = fmt::format(
          "{} received work between a group of rank {} and the moment at which its non-blocking "
          "communicator returned ncclSuccess: the order of the two is undefined",
          driver::text_of(*work.stream), rank_);
      driver::break_context(*context_, fault);
    }
    if (driver::ItemPointer item = driver::submit(*work.stream, std::move(work.work))) {
      queued_.push_back(std::move(item));
    }
  }
  works_.clear();
  peers_.clear();
}

bool Communicator::advance() {
  switch (phase_) {
    case Phase::kMeeting:
      if (!met_) return false;
      failure_ = met_with_;
      phase_ = failure_ == abi::kNcclSuccess ? Phase::kReady : Phase::kFailed;
      return true;
    case Phase::kQueueing:
      if (lost_remote_rank() >= 0) break;
      if (!peers_came()) return false;
      queue_works();
      phase_ = Phase::kReady;
      return true;
    case Phase::kFinalizing:
      if (!all_said_bye() || !std::ranges::all_of(queued_, [](const driver::ItemPointer& item) {
            return driver::done(item);
          })) {
        return false;
      }
      phase_ = Phase::kRevoked;
      return true;
    case Phase::kReady:
    case Phase::kRevoked:
    case Phase::kAborted:
    case Phase::kFailed:
      break;
  }
  if (phase_ != Phase::kReady && phase_ != Phase::kQueueing) return true;
  if (const int lost = lost_remote_rank(); lost >= 0) {
    failure_ =
        say(abi::kNcclRemoteError,
            fmt::format("rank {} of {} lost its connection to rank {}", rank_, ranks_, lost));
    phase_ = Phase::kFailed;
  }
  return true;
}

NcclResult Communicator::status() {
  const std::lock_guard lock(mutex_);
  if (polls_ > 0 && phase_ != Phase::kReady) {
    --polls_;
    return abi::kNcclInProgress;
  }
  return advance() ? failure_ : abi::kNcclInProgress;
}

NcclResult Communicator::finish() {
  NcclResult code = abi::kNcclInProgress;
  {
    const std::lock_guard lock(mutex_);
    polls_ = 0;
  }
  inbox_->wait([&] {
    code = stopped() ? abi::kNcclInternalError : status();
    return code != abi::kNcclInProgress;
  });
  return code;
}

NcclResult Communicator::refusal() {
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case Phase::kReady:
      return abi::kNcclSuccess;
    case Phase::kMeeting:
    case Phase::kQueueing:
    case Phase::kFinalizing:
      return abi::kNcclInvalidArgument;  // "before the previous operation returned ncclSuccess"
    case Phase::kRevoked:
    case Phase::kAborted:
      return abi::kNcclInvalidUsage;
    case Phase::kFailed:
      return failure_;
  }
  return abi::kNcclInternalError;
}

void Communicator::enqueue(std::vector<GroupWork> works, const std::vector<int>& peers) {
  std::vector<int> fresh;
  {
    const std::lock_guard lock(mutex_);
    for (const int peer : peers) {
      if (!connected_[static_cast<std::size_t>(peer)]) fresh.push_back(peer);
    }
    works_ = std::move(works);
    peers_ = fresh;
    phase_ = Phase::kQueueing;
    polls_ = blocking_ ? 0 : draw(options().polls);
  }
  for (const int peer : fresh) wire_->send(peer, {.kind = Kind::kConnect});
}

bool Communicator::cut(int peer) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (int rank = 0; wire_ != nullptr && rank < ranks_; ++rank) {
    if ((peer < 0 || rank == peer) && wire_->cut(rank)) any = true;
  }
  return any;
}

void Communicator::give_up() {
  stop_ = true;
  inbox_->wake();
  if (meeting_.joinable()) meeting_.join();
  const std::lock_guard lock(mutex_);
  stop_serving(place_);
  if (wire_ != nullptr) {
    // Ranks on other hosts only observe that the connections end.
    for (int rank = 0; rank < ranks_; ++rank) {
      const Member& member = wire_->members()[static_cast<std::size_t>(rank)];
      if (rank != rank_ && member.host == wire_->own().host) {
        wire_->send(rank, {.kind = Kind::kBye});
      }
    }
  }
  works_.clear();
  phase_ = Phase::kAborted;
  failure_ = abi::kNcclSuccess;
}

NcclResult Communicator::revoke() {
  stop_ = true;
  inbox_->wake();
  std::vector<driver::ItemPointer> queued;
  {
    const std::lock_guard lock(mutex_);
    works_.clear();
    queued = std::move(queued_);
    phase_ = Phase::kRevoked;
    failure_ = abi::kNcclSuccess;
    polls_ = blocking_ ? 0 : draw(options().polls);
  }
  for (const driver::ItemPointer& item : queued) driver::finish(item);
  return abi::kNcclSuccess;
}

NcclResult Communicator::finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (finalized_) return abi::kNcclInvalidArgument;
    finalized_ = true;
    phase_ = Phase::kFinalizing;
    polls_ = blocking_ ? 0 : draw(options().polls);
  }
  if (blocking_) {
    for (const driver::ItemPointer& item : queued_) driver::finish(item);
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) wire_->send(rank, {.kind = Kind::kBye});
  }
  return abi::kNcclSuccess;
}

}  // namespace annulus::simulator::nccl
