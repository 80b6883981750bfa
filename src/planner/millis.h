#ifndef ANNULUS_PLANNER_MILLIS_H_
#define ANNULUS_PLANNER_MILLIS_H_

#include <chrono>

namespace annulus::planner {

// For the times in PlanInfo and RingInfo.
using Clock = std::chrono::steady_clock;

inline double millis(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_MILLIS_H_
