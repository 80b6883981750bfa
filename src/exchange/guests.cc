#include "exchange/guests.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace annulus::exchange {
namespace {

constexpr auto kGreeting = std::chrono::seconds(1);
// Beyond so many, those that came first are dropped: ranks say hello at once.
constexpr std::size_t kMostGuests = 256;
constexpr int kMostAtOnce = 64;

}  // namespace

void Guests::add_to(Poller* poller) const {
  poller->add(listener_.handle(), POLLIN);
  for (const Guest& guest : guests_) poller->add(guest.socket.handle(), POLLIN);
}

SteadyClock::time_point Guests::next_end(SteadyClock::time_point end) const {
  return guests_.empty() ? end : std::min(end, guests_.front().end);
}

void Guests::let_in() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Socket socket = accept_from(listener_);
    if (!socket.is_open()) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // No descriptors are left: whoever waits at the listener would wake us without a pause.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    guests_.push_back({std::move(socket), SteadyClock::now() + kGreeting, {}});
    if (guests_.size() <= kMostGuests) continue;
    guests_.pop_front();
    ++strangers_;
  }
}

std::vector<Guests::Arrival> Guests::take() {
  let_in();
  std::vector<Arrival> arrivals;
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
        arrivals.push_back({std::move(guest.socket), std::move(*hello)});
        continue;
      }
    } else if ((count > 0 || nothing) && SteadyClock::now() < guest.end) {
      rest.push_back(std::move(guest));
      continue;
    }
    ++strangers_;
  }
  guests_ = std::move(rest);
  return arrivals;
}

}  // namespace annulus::exchange
