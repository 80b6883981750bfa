#ifndef ANNULUS_PROGRAM_RUN_SEAT_H_
#define ANNULUS_PROGRAM_RUN_SEAT_H_

#include <string>

namespace annulus::program {

// The rank of this process in a ring, and the way to find the other ranks.
struct Seat {
  int rank = 0;
  int ranks = 1;
  int on_host = 0;      // its index among the ranks on its host
  std::string address;  // see RendezvousOptions::address
  std::string token;    // see RendezvousOptions::token
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_SEAT_H_
