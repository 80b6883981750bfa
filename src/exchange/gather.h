#ifndef ANNULUS_EXCHANGE_GATHER_H_
#define ANNULUS_EXCHANGE_GATHER_H_

// Small texts from every rank to every rank, over the communicator itself: what ranks agree on when
// they plan. It waits for the device, as long as planning may take.

#include <string>
#include <vector>

#include "exchange/rank.h"

namespace annulus::exchange {

// The texts of all ranks, in their order; they may have different lengths. It has to be called by
// all ranks. Throws Error{kCommunication} where a rank does not come, after which the communicator
// is given up.
std::vector<std::string> all_gather(Rank& rank, const std::string& own);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_GATHER_H_
