#ifndef ANNULUS_TUNED_ENTRY_PROBLEM_H_
#define ANNULUS_TUNED_ENTRY_PROBLEM_H_

// The problem that was measured, as an entry keeps it, so that it can be measured again.

#include <utility>

#include "annulus/problem.h"
#include "annulus/selection.h"
#include "tuned/batch_target.h"
#include "tuned/entry.h"

namespace annulus::tuned {

// Writes a problem to an entry's origin. The pattern's text stays empty where an entry cannot hold
// the problem: blocks() of a file or of memory, texts longer than kMaxEntryText, tensors that are
// parts of longer ones, blocks of scales that differ.
void state_problem(const Problem& problem, Entry::Origin* origin);
// The problem and the selection with it.
void state_selected(const Problem& problem, const Selection& selection, Entry::Origin* origin);
// A batch and the step that is measured, which is left out where it has more than kMaxStepNumbers.
// Options of the plan are not stated: what is tuned has none.
void state_batch(const BatchTarget& batch, Entry::Origin* origin);

// What was stated, which names no file. Throws Error{kUnsupported} where the entry does not hold
// it, Error{kInvalidFile} where what it holds is not valid or of another key.
Problem problem_of(const Entry& entry);
std::pair<Problem, Selection> selected_of(const Entry& entry);
BatchTarget batch_of(const Entry& entry);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_PROBLEM_H_
