#ifndef ANNULUS_EXCHANGE_GATHER_H_
#define ANNULUS_EXCHANGE_GATHER_H_

// What ranks say to each other when they plan, as long as planning may take.

#include <span>
#include <string>
#include <vector>

#include "exchange/rank.h"

namespace annulus::exchange {

// The texts of all ranks, in their order; they may have different lengths. They go over the control
// channel, which tells who has gone, and over the communicator where there is none. It has to be
// called by all ranks. Throws Error{kCommunication} where a rank does not come, after which the
// communicator is given up.
std::vector<std::string> all_gather(Rank& rank, const std::string& own);

// Exchanges a few bytes with each peer, which does the same: NCCL connects two ranks with their
// first messages, and waits for both meanwhile. Throws likewise.
void connect(Rank& rank, std::span<const int> peers);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_GATHER_H_
