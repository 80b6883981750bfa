#ifndef ANNULUS_PROGRAM_RUN_SEAT_H_
#define ANNULUS_PROGRAM_RUN_SEAT_H_

#include <string>

namespace annulus::program {

// Which rank of a ring this process is, and how it finds the others.
struct Seat {
  int rank = 0;
  int ranks = 1;
  int on_host = 0;      // its number among the ranks of its host
  std::string address;  // as RendezvousOptions::address
  std::string token;    // as RendezvousOptions::token
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_SEAT_H_
