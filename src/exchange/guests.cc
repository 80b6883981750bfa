#include "exchange/guests.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace annulus::exchange {
namespace {

constexpr auto kGreeting = std::chrono::seconds(1);
constexpr std::size_t kMaxGuests = 256;
constexpr int kMaxCallersAtOnce = 64;

}  // namespace

void Guests::add_to(Poller* poller) const {
  poller->add(listener_.handle(), POLLIN);
  for (const Guest& guest : guests_) poller->add(guest.socket.handle(), POLLIN);
}

SteadyClock::time_point Guests::next_end(SteadyClock::time_point end) const {
  return guests_.empty() ? end : std::min(end, guests_.front().end);
}

bool Guests::let_in() {
  for (int i = 0; i < kMaxCallersAtOnce; ++i) {
    Socket socket = accept_from(listener_);
    if (!socket.is_open()) return errno != EMFILE && errno != ENFILE;
    guests_.push_back({std::move(socket), SteadyClock::now() + kGreeting, {}});
  }
  return true;
}

void Guests::drop_first() {
  guests_.pop_front();
  ++strangers_;
}

void Guests::hear(std::vector<Arrival>* arrivals) {
  std::deque<Guest> rest;
  for (Guest& guest : guests_) {
    std::byte chunk[kHelloBytes];
    const std::size_t wanted = kHelloBytes - guest.said.size();
    const ssize_t count = recv(guest.socket.handle(), chunk, wanted, 0);
    const bool nothing = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (count > 0) guest.said.insert(guest.said.end(), chunk, chunk + count);
    if (guest.said.size() == kHelloBytes) {
      std::optional<Hello> hello = parse_hello(guest.said);
      if (hello) {
        arrivals->push_back({std::move(guest.socket), std::move(*hello)});
        continue;
      }
    } else if ((count > 0 || nothing) && SteadyClock::now() < guest.end) {
      rest.push_back(std::move(guest));
      continue;
    }
    ++strangers_;
  }
  guests_ = std::move(rest);
}

std::vector<Guests::Arrival> Guests::take() {
  std::vector<Arrival> arrivals;
  // A rank sends its hello at once, so the arrived bytes are read before a connection is dropped.
  for (int dropped = 0; dropped < kMaxCallersAtOnce; ++dropped) {
    const bool has_room = let_in();
    hear(&arrivals);
    while (guests_.size() > kMaxGuests) drop_first();
    if (has_room) break;
    if (guests_.empty()) {
      // Other parts of this process have used up the descriptors. A connection that waits at the
      // listener would wake this thread again and again without a pause.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      break;
    }
    drop_first();
  }
  return arrivals;
}

}  // namespace annulus::exchange
