#include "exchange/control.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/no_signals.h"
#include "base/turn.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

using namespace std::chrono_literals;

constexpr auto kIdle = std::chrono::hours(1);
// the time limit for sent frames to arrive when the object is destroyed
constexpr auto kEnding = 500ms;
constexpr auto kEndingPause = 1ms;
constexpr auto kBetweenNews = 20ms;  // the interval of the checks while a gather waits
// The number of calls that a rank may be ahead of another. It is more than the calls that a rank
// can start when it fails and tries again.
constexpr std::size_t kMaxShares = 8;
// The number of frames that may be queued for a rank that does not read.
constexpr std::size_t kMaxQueued = 16;
constexpr std::size_t kMaxAtOnce = 65536;

// The number of channels that another rank may be ahead of this one. It is more than the
// communicators that one rank can have opened before another rank opens them.
constexpr std::uint64_t kMaxAhead = 64;

std::vector<int> members_of(const World& world) {
  if (!world.members.empty()) return world.members;
  std::vector<int> own(static_cast<std::size_t>(world.ranks));
  std::iota(own.begin(), own.end(), 0);
  return own;
}

std::uint64_t digest_of(const std::vector<int>& members) {
  const base::Digest digest = base::digest(encode_list(members));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i) number = number << 8 | digest.bytes[i];
  return number;
}

}  // namespace

Control::Control(World world)
    : rank_(world.rank),
      ranks_(world.ranks),
      generation_(world.generation),
      members_(members_of(world)),
      members_digest_(digest_of(members_)),
      peers_(static_cast<std::size_t>(world.ranks)) {
  for (int rank = 0; rank < ranks_; ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.link = std::move(world.links[static_cast<std::size_t>(rank)]);
    peer.rank = rank;
    peer.gone = rank != rank_ && !peer.link.is_open();
    if (peer.gone) peer.reason = "its connection ended while the ranks regrouped";
  }
  for (const int rank : world.to_say) peers_[static_cast<std::size_t>(rank)].of_before = true;
  engine_ = channel_at(0);
  if (ranks_ == 1) return;
  waker_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker_.is_open()) {
    base::fail(ErrorCode::kCommunication, "no event for the control channel: {}",
               base::describe_errno(errno));
  }
  wake();  // frames may have arrived during the meeting
  const base::NoSignals quiet;
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

// Other ranks may send on a channel before this rank has opened it. Such a channel is created here
// and kept until this rank opens it.
Channel* Control::channel_at(std::uint64_t number) {
  std::unique_ptr<Channel>& channel = channels_[number];
  if (!channel) {
    channel = std::make_unique<Channel>();
    channel->number = number;
    channel->heard.resize(peers_.size());
  }
  return channel.get();
}

Channel* Control::open_channel(std::shared_ptr<Bell> bell) {
  const std::lock_guard lock(mutex_);
  Channel* const channel = channel_at(opened_ + 1);
  ++opened_;
  channel->bell = std::move(bell);
  return channel;
}

void Control::leave_channel(Channel* channel) {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (peer.link.is_open()) tell_position(&peer, channel);
  }
  say_to_all(FrameKind::kClosed, channel->number, {});
}

void Control::close_channel(Channel* channel) noexcept {
  const std::lock_guard lock(mutex_);
  channels_.erase(channel->number);
}

void Control::post(Channel* channel, const Position& position) noexcept {
  channel->posted.write(position);
  if (ranks_ > 1) wake();
}

std::vector<Control::Known> Control::known(const Channel* channel) const {
  const std::lock_guard lock(mutex_);
  const SteadyClock::time_point now = SteadyClock::now();
  std::vector<Known> all;
  for (const Peer& peer : peers_) {
    if (peer.rank == rank_) continue;
    Known known;
    known.state.rank = peer.rank;
    known.state.gone = known.dead = peer.gone;
    known.state.reason = peer.reason;
    known.answered = peer.answered;
    const Channel::Heard& heard = channel->heard[static_cast<std::size_t>(peer.rank)];
    known.state.posted = heard.posted;
    known.state.position = heard.position;
    if (heard.posted) {
      known.state.silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - heard.when);
    }
    known.notice = heard.notice;
    known.left = heard.closed;
    if (!peer.gone && (heard.closed || peer.regroups())) {
      known.state.gone = true;
      known.state.reason =
          peer.regroups() ? "it continues with others" : "it has ended its communicator";
    }
    all.push_back(std::move(known));
  }
  return all;
}

std::optional<std::string> Control::ended() const {
  const std::lock_guard lock(mutex_);
  return end_text();
}

std::string Control::left_out_text(int by) const {
  return fmt::format("rank {} of {} leaves this rank out and continues without it", by, ranks_);
}

std::optional<std::string> Control::end_text() const {
  if (ended_) return ended_;
  for (const Peer& peer : peers_) {
    for (const auto* const list : {&peer.survivors, &peer.decided}) {
      if (*list && !std::ranges::binary_search(**list, rank_)) return left_out_text(peer.rank);
    }
  }
  return std::nullopt;
}

void Control::ring_all() noexcept {
  for (const auto& [number, channel] : channels_) {
    if (channel->bell) channel->bell->ring();
  }
}

void Control::say_to_all(FrameKind kind, std::uint64_t number, std::span<const std::byte> bytes) {
  const Link::Bytes frame =
      std::make_shared<const std::vector<std::byte>>(encode(kind, number, bytes));
  for (Peer& peer : peers_) {
    if (peer.link.is_open() && !peer.deaf) put(&peer, frame);
  }
  if (ranks_ > 1) wake();
}

void Control::put(Peer* peer, Link::Bytes frame) {
  peer->link.put(std::move(frame));
  if (peer->link.queued() <= kMaxQueued) return;
  // The carrier may not have sent the queued frames yet.
  std::string reason;
  if (!peer->link.flush(&reason)) {
    peer->deaf = true;
  } else if (peer->link.queued() > kMaxQueued) {
    drop(peer, "it does not read its messages");
  }
}

std::uint64_t Control::ask() {
  const std::lock_guard lock(mutex_);
  say_to_all(FrameKind::kQuestion, ++asked_, {});
  return asked_;
}

void Control::tell(const Channel* channel, const Notice& notice) {
  const std::vector<std::byte> bytes = encode(notice);
  const std::lock_guard lock(mutex_);
  say_to_all(FrameKind::kNotice, channel->number, bytes);
}

Gathered Control::gather(std::span<const std::byte> own, std::chrono::milliseconds deadline,
                         const InVain& in_vain) {
  const base::Turn turn(&busy_, "another thread is inside a gather of this rendezvous; take turns");
  if (own.size() > Rendezvous::kMaxBytes) {
    base::fail(ErrorCode::kInvalidArgument, "{} bytes for an all-gather; at most {} are allowed",
               own.size(), Rendezvous::kMaxBytes);
  }
  if (deadline < 1ms || deadline > kLongestDeadline) {
    base::fail(ErrorCode::kInvalidArgument,
               "a deadline of {} ms for an all-gather; give 1 ms to a day", deadline.count());
  }
  const SteadyClock::time_point end = SteadyClock::now() + deadline;
  Gathered gathered;
  gathered.bytes.resize(peers_.size());
  gathered.bytes[static_cast<std::size_t>(rank_)].assign(own.begin(), own.end());
  std::unique_lock lock(mutex_);
  if (const auto ended = end_text()) throw Error(ErrorCode::kCommunication, *ended);
  const std::uint64_t number = calls_ + 1;
  say_to_all(FrameKind::kGather, number, own);
  calls_ = number;
  const auto has_come = [&](Peer& peer) {
    std::erase_if(peer.shares, [&](const Share& share) { return share.number < number; });
    return !peer.shares.empty() && peer.shares.front().number == number;
  };
  std::vector<int> awaited;
  const auto have_all_come = [&] {
    awaited.clear();
    for (Peer& peer : peers_) {
      // After the system has taken this rank's bytes, they arrive even if this process dies.
      const bool told = peer.link.queued() == 0;
      if (peer.rank == rank_ || peer.gone || (has_come(peer) && told) || peer.regroups()) continue;
      awaited.push_back(peer.rank);
    }
    return awaited.empty();
  };
  while (!have_all_come() && SteadyClock::now() < end) {
    if (!in_vain) {
      came_.wait_until(lock, end, have_all_come);
      continue;
    }
    lock.unlock();
    const bool ends = in_vain(awaited);
    lock.lock();
    if (ends) break;
    came_.wait_until(lock, std::min(end, SteadyClock::now() + kBetweenNews), have_all_come);
  }
  for (Peer& peer : peers_) {
    if (peer.rank == rank_) continue;
    if (has_come(peer)) {
      gathered.bytes[static_cast<std::size_t>(peer.rank)] = std::move(peer.shares.front().bytes);
      peer.shares.pop_front();
    } else {
      // A rank that regroups makes no more calls on this object.
      (peer.gone || peer.regroups() ? gathered.gone : gathered.late).push_back(peer.rank);
    }
  }
  return gathered;
}

std::vector<std::vector<std::byte>> Control::all_gather(std::span<const std::byte> own,
                                                        std::chrono::milliseconds deadline) {
  Gathered gathered = gather(own, deadline);
  if (const std::optional<Notice> missing = missing_in(gathered, deadline)) {
    throw Error(ErrorCode::kCommunication, missing->text);
  }
  return std::move(gathered.bytes);
}

std::optional<Notice> Control::missing_in(const Gathered& gathered,
                                          std::chrono::milliseconds deadline) const {
  if (gathered.gone.empty() && gathered.late.empty()) return std::nullopt;
  // Ranks that have died are named before ranks that regroup because of them.
  std::vector<int> dead;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(gathered.gone, std::back_inserter(dead),
                         [&](int rank) { return peers_[static_cast<std::size_t>(rank)].gone; });
  }
  Notice missing;
  missing.ranks = dead.empty() ? gathered.gone : dead;
  if (!missing.ranks.empty()) {
    missing.text =
        fmt::format("{} {} gone", name_ranks(missing.ranks, ranks_), have(missing.ranks));
  }
  if (!gathered.late.empty()) {
    missing.text +=
        fmt::format("{}{} {} not come within {} ms", missing.text.empty() ? "" : ", and ",
                    name_ranks(gathered.late, ranks_), have(gathered.late), deadline.count());
    missing.ranks.insert(missing.ranks.end(), gathered.late.begin(), gathered.late.end());
    std::ranges::sort(missing.ranks);
  }
  return missing;
}

void Control::drop(Peer* peer, const std::string& reason) {
  peer->link.close();
  peer->gone = true;
  peer->reason = reason;
  ring_all();
}

// Returns false if it is not a frame of a channel.
bool Control::take_of_channel(Peer* peer, const Frame& frame) {
  constexpr FrameKind kOnes[] = {FrameKind::kPosition, FrameKind::kNotice, FrameKind::kClosed};
  if (std::ranges::find(kOnes, frame.kind) == std::end(kOnes)) return false;
  const bool past = frame.number <= opened_ && !channels_.contains(frame.number);
  if (past) return true;
  if (frame.number > opened_ + kMaxAhead) {
    drop(peer, "it is too many channels ahead");
    return true;
  }
  Channel* const channel = channel_at(frame.number);
  Channel::Heard& heard = channel->heard[static_cast<std::size_t>(peer->rank)];
  if (frame.kind == FrameKind::kClosed) {
    heard.closed = true;
    if (channel->bell) channel->bell->ring();
    return true;
  }
  if (frame.kind == FrameKind::kNotice) {
    const std::optional<Notice> notice = parse_notice(frame.bytes, ranks_);
    if (!notice) {
      drop(peer, "it sent an invalid notice");
    } else if (!heard.notice) {
      heard.notice = notice;
      if (channel->bell) channel->bell->ring();
    }
    return true;
  }
  const std::optional<Position> position = parse_position(frame.bytes);
  if (!position) {
    drop(peer, "it sent an invalid position");
    return true;
  }
  heard.position = *position;
  heard.when = SteadyClock::now();
  heard.posted = true;
  return true;
}

// Returns false if it is neither a question nor an answer.
bool Control::take_of_question(Peer* peer, const Frame& frame) {
  if (frame.kind == FrameKind::kQuestion) {
    const auto answer = encode(FrameKind::kAnswer, frame.number, {});
    if (!peer->deaf) put(peer, std::make_shared<const std::vector<std::byte>>(answer));
    return true;
  }
  if (frame.kind != FrameKind::kAnswer) return false;
  if (frame.number > asked_) {
    drop(peer, "it sent an answer to no question");
  } else {
    peer->answered = std::max(peer->answered, frame.number);
  }
  return true;
}

void Control::take(Peer* peer, Frame frame) {
  const bool of_list = frame.kind == FrameKind::kSurvivors || frame.kind == FrameKind::kGeneration;
  if (peer->of_before) {
    const auto own = static_cast<std::uint64_t>(generation_);
    peer->of_before = !(frame.kind == FrameKind::kGeneration && frame.number == own);
    return;
  }
  if (of_list) {
    std::optional<std::vector<int>> list = parse_list(frame.bytes, ranks_);
    if (!list || frame.number != static_cast<std::uint64_t>(generation_) + 1) {
      return drop(peer, "it sent an invalid list of ranks");
    }
    (frame.kind == FrameKind::kSurvivors ? peer->survivors : peer->decided) = std::move(list);
    ring_all();
    return;
  }
  if (take_of_channel(peer, frame) || take_of_question(peer, frame)) return;
  if (frame.kind != FrameKind::kGather || frame.number != peer->last_share + 1) {
    return drop(peer, "it sent an unexpected message");
  }
  peer->last_share = frame.number;
  std::erase_if(peer->shares, [&](const Share& share) { return share.number < calls_; });
  if (peer->shares.size() >= kMaxShares) return drop(peer, "it is too many calls ahead");
  peer->shares.push_back({frame.number, std::move(frame.bytes)});
}

void Control::take_frames(Peer* peer) {
  while (peer->link.is_open() && !peer->decided) {
    std::optional<Frame> frame = peer->link.in().next();
    if (!frame) break;
    take(peer, std::move(*frame));
  }
  if (peer->link.in().broken()) drop(peer, "it sent bytes that are not a message");
}

// At most one position of each channel is queued for a rank that does not read. After that one was
// sent, the newest position follows.
void Control::tell_positions(Peer* peer) {
  if (peer->link.queued() > 0 || peer->deaf) return;
  for (const auto& [number, channel] : channels_) tell_position(peer, channel.get());
}

void Control::tell_position(Peer* peer, Channel* channel) {
  std::uint64_t& told = channel->heard[static_cast<std::size_t>(peer->rank)].told;
  Position position;
  const std::uint64_t writes = channel->posted.read(&position);
  if (writes == told || writes % 2 == 1) return;
  peer->link.put(encode(FrameKind::kPosition, channel->number, encode(position)));
  told = writes;
}

void Control::serve_peers(const Poller& poller) {
  for (Peer& peer : peers_) {
    if (!peer.link.is_open()) continue;
    std::string reason;
    const bool reads = !peer.decided && (poller.events(peer.link.handle()) & ~POLLOUT) != 0;
    const bool good = !reads || peer.link.receive(kMaxAtOnce, &reason);
    take_frames(&peer);
    if (!peer.link.is_open()) continue;
    if (!good) {
      drop(&peer, reason);
      continue;
    }
    // Frames that the peer sent before its connection ended must still be read.
    if (!peer.link.flush(&reason)) peer.deaf = true;
    tell_positions(&peer);
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
      // It is not known which frame was lost, so all connections end. The others then see that this
      // rank has gone.
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
      const int reads = peer.decided ? 0 : POLLIN;
      if (!waits && reads == 0) continue;
      poller.add(peer.link.handle(), static_cast<short>(reads | (waits ? POLLOUT : 0)));
    }
  }
  poller.wait(SteadyClock::now() + longest);
  std::uint64_t orders = 0;
  static_cast<void>(!::read(waker_.handle(), &orders, sizeof(orders)));
  const std::lock_guard lock(mutex_);
  serve_peers(poller);
}

}  // namespace annulus::exchange
