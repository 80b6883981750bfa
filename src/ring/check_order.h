#ifndef ANNULUS_RING_CHECK_ORDER_H_
#define ANNULUS_RING_CHECK_ORDER_H_

// The part of check_schedule.h that is about order: whether ops wait for each other in a circle,
// and whether every buffer holds the right keys when it is read.

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// Null where the rank has no exchange in that step; else *index is its index among the rank's ops.
// A rank has at most one exchange in a step.
const Op* exchange_of(const Schedule& schedule, int rank, int step, int* index);

// Requires: all numbers in the schedule are in range.
void check_order(const Schedule& schedule, ViolationReport* report);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_ORDER_H_
