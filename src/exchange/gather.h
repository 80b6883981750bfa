#ifndef ANNULUS_EXCHANGE_GATHER_H_
#define ANNULUS_EXCHANGE_GATHER_H_

// The messages that ranks exchange while they plan, with the time limit of planning.

#include <span>
#include <string>
#include <vector>

#include "exchange/rank.h"

namespace annulus::exchange {

// Returns the texts of all ranks, in their order. The texts may have different lengths. They travel
// over the control channel, which reports ranks that have gone, or over the communicator if there
// is no control channel. All ranks must call it. Throws Error{kCommunication} if a rank does not
// arrive; then the communicator has been given up.
std::vector<std::string> all_gather(Rank& rank, const std::string& own);

// Exchanges a few bytes with each peer, which must make the same call. NCCL connects two ranks at
// their first messages, and both wait until they are connected. Throws as all_gather() does.
void connect(Rank& rank, std::span<const int> peers);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_GATHER_H_
