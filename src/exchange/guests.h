#ifndef ANNULUS_EXCHANGE_GUESTS_H_
#define ANNULUS_EXCHANGE_GUESTS_H_

// The connections to a listener that have not sent a hello yet. Each has one second to do so. No
// more bytes than the length of a hello are read from it, and no thread blocks on it. If there are
// too many connections, or if no descriptor is left for the next one, the oldest ones are dropped.

#include <deque>
#include <vector>

#include "exchange/socket.h"

namespace annulus::exchange {

class Guests {
 public:
  explicit Guests(Socket listener) : listener_(std::move(listener)) {}

  void add_to(Poller* poller) const;
  // The time at which the next guest must be dropped, but not later than `end`.
  SteadyClock::time_point next_end(SteadyClock::time_point end) const;

  struct Arrival {
    Socket socket;
    Hello hello;
  };
  // Accepts new connections, reads what has arrived, and drops connections that took too long or
  // sent something other than a hello.
  std::vector<Arrival> take();
  // The number of connections that were dropped.
  int strangers() const { return strangers_; }

 private:
  struct Guest {
    Socket socket;
    SteadyClock::time_point end;
    std::vector<std::byte> said;
  };
  // Returns false if no descriptor was left for the next connection.
  bool let_in();
  void hear(std::vector<Arrival>* arrivals);
  void drop_first();

  Socket listener_;
  std::deque<Guest> guests_;  // the oldest one is in front
  int strangers_ = 0;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_GUESTS_H_
