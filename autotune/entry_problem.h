#ifndef ANNULUS_AUTOTUNE_ENTRY_PROBLEM_H_
#define ANNULUS_AUTOTUNE_ENTRY_PROBLEM_H_

// The problem that was measured, as an entry keeps it, so that it can be measured again.

#include "annulus/attention.h"
#include "autotune/entry.h"

namespace annulus::autotune {

// Writes a problem to an entry's origin. The pattern's text stays empty where an entry cannot hold
// the problem: blocks() of a file or of memory, texts longer than kMaxEntryText, tensors that are
// parts of longer ones, blocks of scales that differ.
void state_problem(const Problem& problem, Entry::Origin* origin);

// That problem. Nothing in it names a file. Throws Error{kUnsupported} where the entry holds none,
// Error{kInvalidFile} where what it holds is no valid problem or one of another key.
Problem problem_of(const Entry& entry);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_ENTRY_PROBLEM_H_
