#ifndef ANNULUS_SIMULATOR_OPS_EACH_LANE_H_
#define ANNULUS_SIMULATOR_OPS_EACH_LANE_H_

#include "simulator/program/lanes.h"

namespace annulus::simulator {

// Placed before a loop over lanes. It declares to the compiler that no lane depends on another,
// even if source and destination are the same register.
#if defined(__clang__)
#define ANNULUS_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANNULUS_LANE_LOOP _Pragma("GCC ivdep")
#endif

// d[lane] = f(s[lane]...) for the lanes of mask. Requires: f is pure, and has no side effect for
// any operand.
template <typename D, typename F, typename... S>
inline __attribute__((always_inline)) void each_lane(Mask mask, D* d, F f, const S*... s) {
  if (mask == kFull) {
    ANNULUS_LANE_LOOP
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = f(s[lane]...);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane) & 1) d[lane] = f(s[lane]...);
    }
  }
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_EACH_LANE_H_
