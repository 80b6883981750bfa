#ifndef ANNULUS_RING_CHECK_ORDER_H_
#define ANNULUS_RING_CHECK_ORDER_H_

// The checks of order in check_schedule.h: no ops wait for each other in a circle, and every range
// of a slot holds the right rows when it is read.

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// Requires: all numbers in the schedule are in range.
void check_order(const Schedule& schedule, ViolationReport* report);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_ORDER_H_
