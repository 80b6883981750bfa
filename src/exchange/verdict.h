#ifndef ANNULUS_EXCHANGE_VERDICT_H_
#define ANNULUS_EXCHANGE_VERDICT_H_

// Whose fault it is that messages do not go on, from what the control channel says.

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "annulus/communicator.h"
#include "exchange/frames.h"
#include "exchange/track.h"

namespace annulus::exchange {

// Says whom a rank of `ranks` has to blame that has waited `waited` at `place` and has heard
// `others`: the ranks that have gone and had not passed the place; else those that are the furthest
// behind it, of which some may be waiting for another: ranks whose messages are under way say so
// now and then, so where some have been silent for half of the wait it is those. Where all have
// come, it is whoever is silent, if anybody is.
Notice blame(std::span<const RankState> others, int ranks, const Place& place,
             std::chrono::milliseconds waited);

// Says whom a rank has to blame for an error of NCCL's, which is `error` in words. NCCL returns
// errors to ranks that are well, since their connections to one that has died end: the error alone
// is no fault of the rank that got it. `dead` are ranks whose connections of the control channel
// have ended, `silent` those that have not answered for `waited`. If there are neither, no rank is
// to blame.
Notice blame_for_error(const std::string& error, std::span<const int> dead,
                       std::span<const int> silent, int ranks, std::chrono::milliseconds waited);

// Ranks that have gone and have not passed the place.
std::vector<int> gone_before(std::span<const RankState> others, const Place& place);

// "round 2 of run 17", "run 17", or "the meeting"
std::string text_of(const Place& place);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_VERDICT_H_
