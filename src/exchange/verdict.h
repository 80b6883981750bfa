#ifndef ANNULUS_EXCHANGE_VERDICT_H_
#define ANNULUS_EXCHANGE_VERDICT_H_

// Determines which rank caused messages to stop, from the messages of the control channel.

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "annulus/communicator.h"
#include "exchange/frames.h"
#include "exchange/track.h"

namespace annulus::exchange {

// Returns the ranks to blame, for a rank that has waited `waited` at `place` and has received the
// states `others`. These are the ranks that have gone without passing the place. If there are none,
// they are the ranks that are furthest behind it. Some of these may only wait for another rank. A
// rank whose messages are in progress sends a sign of life from time to time. So if some of the
// ranks furthest behind have been silent for half of the wait, only these are blamed. If all ranks
// have reached the place, the silent ranks are blamed, if there are any.
Notice blame(std::span<const RankState> others, int ranks, const Place& place,
             std::chrono::milliseconds waited);

// Returns the ranks to blame for an error of NCCL, which is `error` in words. NCCL also returns
// errors to healthy ranks, because their connections to a dead rank end. So an error alone is not
// the fault of the rank that got it. `dead` are the ranks whose control connections have ended.
// `silent` are the ranks that have not answered for `waited`. If both are empty, no rank is blamed.
Notice blame_for_error(const std::string& error, std::span<const int> dead,
                       std::span<const int> silent, int ranks, std::chrono::milliseconds waited);

// The ranks that have gone without passing the place.
std::vector<int> gone_before(std::span<const RankState> others, const Place& place);

// For example "round 2 of run 17", "run 17", or "the meeting".
std::string text_of(const Place& place);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_VERDICT_H_
