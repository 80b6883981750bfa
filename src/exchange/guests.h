#ifndef ANNULUS_EXCHANGE_GUESTS_H_
#define ANNULUS_EXCHANGE_GUESTS_H_

// Whoever connects to a listener, until it has said hello. It has a second for that; more bytes
// than a hello has are not read from it, and nobody waits for it. If there are too many, or no
// descriptor is left for the next one, those that came first are dropped.

#include <deque>
#include <vector>

#include "exchange/socket.h"

namespace annulus::exchange {

class Guests {
 public:
  explicit Guests(Socket listener) : listener_(std::move(listener)) {}

  void add_to(Poller* poller) const;
  // When the next one has to be dropped, or `end`.
  SteadyClock::time_point next_end(SteadyClock::time_point end) const;

  struct Arrival {
    Socket socket;
    Hello hello;
  };
  // Takes in who has come, reads what is there, and drops who took too long or said something else.
  std::vector<Arrival> take();
  // Those that were dropped.
  int strangers() const { return strangers_; }

 private:
  struct Guest {
    Socket socket;
    SteadyClock::time_point end;
    std::vector<std::byte> said;
  };
  // False: no descriptor was left for the next one.
  bool let_in();
  void hear(std::vector<Arrival>* arrivals);
  void drop_first();

  Socket listener_;
  std::deque<Guest> guests_;  // the one that came first is in front
  int strangers_ = 0;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_GUESTS_H_
