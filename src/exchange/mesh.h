#ifndef ANNULUS_EXCHANGE_MESH_H_
#define ANNULUS_EXCHANGE_MESH_H_

// Connects ranks to each other after all have received the addresses of the others.

#include <optional>

#include "exchange/attendee.h"

namespace annulus::exchange {

// The next frame from rank 0 that is not a list of missing ranks. Lists of missing ranks are stored
// in *news. Returns nothing if `end` passes first. Throws the refusal that rank 0 sends, and an
// error if rank 0 has gone.
std::optional<Frame> hear_leader(const Self& self, Link* leader, TimePoint end, News* news);

// Connects this rank to all others. A failure on one rank is reported to all ranks.
World complete(const Self& self, const Roster& roster, Socket listener, World world);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MESH_H_
