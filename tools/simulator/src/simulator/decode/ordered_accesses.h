#ifndef ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_
#define ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_

// Finds out whether the CTAs of a kernel wait for each other, or distribute work among themselves.
// Such a kernel needs co-resident CTAs. If a CTA waits for another one that begins only after its
// end, it waits for ever. If a CTA takes work from a counter in a loop, it takes all of it.
//
// CTAs learn about each other only by an atomic whose result is used, or by a strong load
// (volatile, relaxed, acquire), with a scope beyond the block. These are the ordered accesses.
//
//   in a loop      the kernel polls, locks or takes work repeatedly, so its CTAs are co-resident
//   in no loop     a ticket, for example for the last CTA, which adds up the results of the others:
//                  no CTA waits, and every order is correct, so the CTAs run one after another
//
// A weak load that polls a flag is not found. It is a race, and the compiler may read the flag only
// once.

#include "simulator/program/program.h"

namespace annulus::simulator {

// Sets Flow::kOrdered for all ordered accesses, and Program::lives_together. Requires: targets of
// branches and calls are indices into the whole program.
void mark_ordered_accesses(Program& program);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_ORDERED_ACCESSES_H_
