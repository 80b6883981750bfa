#ifndef ANNULUS_EXCHANGE_MESH_H_
#define ANNULUS_EXCHANGE_MESH_H_

// How ranks that know where the others listen connect to them.

#include <optional>

#include "exchange/attendee.h"

namespace annulus::exchange {

// The next frame of rank 0 that is none of the list of the missing, which is kept. Nothing where
// `end` comes first. Throws what rank 0 says, and where it has gone.
std::optional<Frame> hear_leader(const Self& self, Link* leader, TimePoint end, News* news);

// Connects all ranks; what fails on one is told to all.
World complete(const Self& self, const Roster& roster, Socket listener, World world);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MESH_H_
