#ifndef ANNULUS_TUNED_ENTRY_PROBLEM_H_
#define ANNULUS_TUNED_ENTRY_PROBLEM_H_

// The measured problem in the form that an entry stores, so that it can be measured again.

#include <utility>

#include "annulus/problem.h"
#include "annulus/selection.h"
#include "tuned/batch_target.h"
#include "tuned/entry.h"

namespace annulus::tuned {

// Writes a problem to an entry's origin. The pattern's text stays empty if an entry cannot store
// the problem: blocks() from a file or from memory, texts longer than kMaxEntryText, tensors that
// are parts of longer ones, or scale blocks of different sizes.
void state_problem(const Problem& problem, Entry::Origin* origin);
// Writes the problem and the selection.
void state_selected(const Problem& problem, const Selection& selection, Entry::Origin* origin);
// Writes a batch and the step that is measured. The step is left out if it has more than
// kMaxStepNumbers numbers. Options of the plan are not written, because tuning uses none.
void state_batch(const BatchTarget& batch, Entry::Origin* origin);

// Reads what the functions above wrote. The result names no file. Throws Error{kUnsupported} if the
// entry does not store it, and Error{kInvalidFile} if the stored values are invalid or belong to
// another key.
Problem problem_of(const Entry& entry);
std::pair<Problem, Selection> selected_of(const Entry& entry);
BatchTarget batch_of(const Entry& entry);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_PROBLEM_H_
