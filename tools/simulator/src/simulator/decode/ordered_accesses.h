#ifndef ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_
#define ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_

// Finds out whether the CTAs of a kernel wait for each other or deal out work among themselves.
// Such a kernel needs CTAs that live together: one that waits for another would wait for ever if
// the other began only after its end, and one that asks a counter for work again and again would be
// given all of it.
//
// Whatever CTAs learn of each other they learn by an atomic whose result is used or by a strong
// load (volatile, relaxed, acquire) with a scope beyond the block: these are the ordered accesses.
//
//   in a loop      the kernel polls, locks or asks for work again, so its CTAs live together
//   in no loop     a ticket, say for the last CTA, which adds up what the others left: no CTA waits,
//                  and any order is as good as another, so one CTA runs to its end after the other
//
// A weak load that polls a flag is not seen. It is a race, which the compiler may read only once.

#include "simulator/program/program.h"

namespace annulus::simulator {

// Gives all ordered accesses Flow::kOrdered, and sets Program::lives_together. Requires: targets of
// branches and calls are those of the whole program.
void mark_ordered_accesses(Program& program);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_
