#include "exchange/control.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/turn.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongest = std::chrono::hours(24);
constexpr auto kIdle = std::chrono::hours(1);
constexpr auto kEnding = 500ms;  // for what was sent to arrive
constexpr auto kEndingPause = 1ms;
// More than the calls by which a rank that fails and tries again may be ahead of another.
constexpr std::size_t kMostShares = 8;
// Frames that wait for a rank which does not read.
constexpr std::size_t kMostQueued = 16;
constexpr std::size_t kMostAtOnce = 65536;

// Signals are the program's: its handlers do not run on threads of the library.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// The release of each field keeps it behind the odd number, and the acquire of each keeps the
// second look at the number behind it.
void PostedPosition::write(const Position& position) noexcept {
  const std::uint64_t before = writes_.load(std::memory_order_relaxed);
  writes_.store(before + 1, std::memory_order_relaxed);
  generation_.store(position.generation, std::memory_order_release);
  run_.store(position.run, std::memory_order_release);
  round_.store(position.round, std::memory_order_release);
  writes_.store(before + 2, std::memory_order_release);
}

std::uint64_t PostedPosition::read(Position* position) const noexcept {
  const std::uint64_t before = writes_.load(std::memory_order_acquire);
  position->generation = generation_.load(std::memory_order_acquire);
  position->run = run_.load(std::memory_order_acquire);
  position->round = round_.load(std::memory_order_acquire);
  const std::uint64_t after = writes_.load(std::memory_order_relaxed);
  return before == after ? after : after | 1;
}

Control::Control(World world)
    : rank_(world.rank), ranks_(world.ranks), peers_(static_cast<std::size_t>(world.ranks)) {
  for (int rank = 0; rank < ranks_; ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.link = std::move(world.links[static_cast<std::size_t>(rank)]);
    peer.state.rank = rank;
  }
  if (ranks_ == 1) return;
  waker_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker_.is_open()) {
    base::fail(ErrorCode::kCommunication, "no event for the control channel: {}",
               base::describe_errno(errno));
  }
  wake();  // frames may have come while the ranks met
  const NoSignals quiet;
  carrier_ = std::thread([this] { carry(); });
}

Control::~Control() {
  if (!carrier_.joinable()) return;
  ends_ = true;
  wake();
  carrier_.join();
}

void Control::wake() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(waker_.handle(), &one, sizeof(one)));
}

void Control::post(const Position& position) noexcept {
  posted_.write(position);
  if (ranks_ > 1) wake();
}

std::vector<RankState> Control::states() const {
  const std::lock_guard lock(mutex_);
  std::vector<RankState> states;
  for (const Peer& peer : peers_) {
    if (peer.state.rank != rank_) states.push_back(peer.state);
  }
  return states;
}

Gathered Control::gather(std::span<const std::byte> own, std::chrono::milliseconds deadline) {
  const base::Turn turn(&busy_, "another thread is inside a gather of this rendezvous; take turns");
  if (own.size() > Rendezvous::kMostBytes) {
    base::fail(ErrorCode::kInvalidArgument, "{} bytes for an all-gather; at most {} go", own.size(),
               Rendezvous::kMostBytes);
  }
  if (deadline < 1ms || deadline > kLongest) {
    base::fail(ErrorCode::kInvalidArgument,
               "a deadline of {} ms for an all-gather; give 1 ms to a day", deadline.count());
  }
  const SteadyClock::time_point end = SteadyClock::now() + deadline;
  Gathered gathered;
  gathered.bytes.resize(peers_.size());
  gathered.bytes[static_cast<std::size_t>(rank_)].assign(own.begin(), own.end());
  std::unique_lock lock(mutex_);
  const std::uint64_t number = calls_ + 1;
  const auto frame =
      std::make_shared<const std::vector<std::byte>>(encode(FrameKind::kGather, number, own));
  calls_ = number;
  for (Peer& peer : peers_) {
    if (!peer.link.is_open() || peer.deaf) continue;
    peer.link.put(frame);
    if (peer.link.queued() > kMostQueued) drop(&peer, "it reads nothing");
  }
  if (ranks_ > 1) wake();
  const auto has_come = [&](Peer& peer) {
    std::erase_if(peer.shares, [&](const Share& share) { return share.number < number; });
    return !peer.shares.empty() && peer.shares.front().number == number;
  };
  came_.wait_until(lock, end, [&] {
    return std::ranges::all_of(peers_, [&](Peer& peer) {
      // Once the system has the own bytes, they arrive even if this process dies.
      const bool told = peer.link.queued() == 0;
      return peer.state.rank == rank_ || peer.state.gone || (has_come(peer) && told);
    });
  });
  for (Peer& peer : peers_) {
    if (peer.state.rank == rank_) continue;
    if (has_come(peer)) {
      gathered.bytes[static_cast<std::size_t>(peer.state.rank)] =
          std::move(peer.shares.front().bytes);
      peer.shares.pop_front();
    } else {
      (peer.state.gone ? gathered.gone : gathered.late).push_back(peer.state.rank);
    }
  }
  return gathered;
}

std::vector<std::vector<std::byte>> Control::all_gather(std::span<const std::byte> own,
                                                        std::chrono::milliseconds deadline) {
  Gathered gathered = gather(own, deadline);
  std::string text;
  if (!gathered.gone.empty()) {
    text = fmt::format("{} {} gone", name_ranks(gathered.gone, ranks_), have(gathered.gone));
  }
  if (!gathered.late.empty()) {
    text += fmt::format("{}{} {} not come within {} ms", text.empty() ? "" : ", and ",
                        name_ranks(gathered.late, ranks_), have(gathered.late), deadline.count());
  }
  if (!text.empty()) throw Error(ErrorCode::kCommunication, text);
  return std::move(gathered.bytes);
}

void Control::drop(Peer* peer, const std::string& reason) {
  peer->link.close();
  peer->state.gone = true;
  peer->state.reason = reason;
}

void Control::take(Peer* peer, Frame frame) {
  if (frame.kind == FrameKind::kPosition) {
    const std::optional<Position> position = parse_position(frame.bytes);
    if (!position) return drop(peer, "it sent no position where one belongs");
    peer->state.position = *position;
    peer->state.posted = true;
    return;
  }
  if (frame.kind != FrameKind::kGather || frame.number != peer->last_share + 1) {
    return drop(peer, "it sent what does not belong there");
  }
  peer->last_share = frame.number;
  std::erase_if(peer->shares, [&](const Share& share) { return share.number < calls_; });
  if (peer->shares.size() >= kMostShares) return drop(peer, "it is too many calls ahead");
  peer->shares.push_back({frame.number, std::move(frame.bytes)});
}

void Control::take_frames(Peer* peer) {
  while (peer->link.is_open()) {
    std::optional<Frame> frame = peer->link.in().next();
    if (!frame) break;
    take(peer, std::move(*frame));
  }
  if (peer->link.in().broken()) drop(peer, "it sent what is no message");
}

// At most one waits for a rank that does not read; the newest one follows it.
void Control::tell_position(Peer* peer) {
  Position position;
  const std::uint64_t writes = posted_.read(&position);
  if (writes == peer->told || writes % 2 == 1 || peer->link.queued() > 0 || peer->deaf) return;
  peer->link.put(encode(FrameKind::kPosition, 0, encode(position)));
  peer->told = writes;
}

void Control::serve_peers(const Poller& poller) {
  for (Peer& peer : peers_) {
    if (!peer.link.is_open()) continue;
    std::string reason;
    const bool reads = (poller.events(peer.link.handle()) & ~POLLOUT) != 0;
    const bool good = !reads || peer.link.receive(kMostAtOnce, &reason);
    take_frames(&peer);
    if (!peer.link.is_open()) continue;
    if (!good) {
      drop(&peer, reason);
      continue;
    }
    // What it sent before it went has still to be read.
    if (!peer.link.flush(&reason)) peer.deaf = true;
    tell_position(&peer);
    if (!peer.link.flush(&reason)) peer.deaf = true;
  }
}

bool Control::all_arrived() const {
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return !peer.link.is_open() || peer.link.arrived(); });
}

void Control::carry() {
  std::optional<SteadyClock::time_point> end;
  while (true) {
    try {
      turn(end ? SteadyClock::duration(kEndingPause) : kIdle);
    } catch (const std::bad_alloc&) {
      // Which frame was lost is not known: the others see that this rank has gone.
      const std::lock_guard lock(mutex_);
      for (Peer& peer : peers_) {
        if (peer.link.is_open()) drop(&peer, "");
      }
      std::this_thread::sleep_for(kEndingPause);
    }
    came_.notify_all();
    if (!ends_) continue;
    if (!end) end = SteadyClock::now() + kEnding;
    const std::lock_guard lock(mutex_);
    if (all_arrived() || SteadyClock::now() >= *end) return;
  }
}

void Control::turn(SteadyClock::duration longest) {
  Poller poller;
  poller.add(waker_.handle(), POLLIN);
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_) {
      if (!peer.link.is_open()) continue;
      const bool waits = peer.link.queued() > 0;
      poller.add(peer.link.handle(), static_cast<short>(POLLIN | (waits ? POLLOUT : 0)));
    }
  }
  poller.wait(SteadyClock::now() + longest);
  std::uint64_t orders = 0;
  static_cast<void>(!::read(waker_.handle(), &orders, sizeof(orders)));
  const std::lock_guard lock(mutex_);
  serve_peers(poller);
}

}  // namespace annulus::exchange
