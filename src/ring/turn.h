#ifndef ANNULUS_RING_TURN_H_
#define ANNULUS_RING_TURN_H_

#include "base/turn.h"

namespace annulus::ring {

// The message of the error if a second thread calls run(), which never waits for another thread.
constexpr const char* kOneRunAtATime =
    "another thread is putting a run of this ring on its streams; plan a ring for each thread, or "
    "take turns";

}  // namespace annulus::ring

#endif  // ANNULUS_RING_TURN_H_
