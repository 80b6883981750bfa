#ifndef ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
#define ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_

// Tuned results as the verbs of `annulus tuned` print them.

#include <string>

#include "annulus/tune.h"
#include "base/json.h"

namespace annulus::program {

// As much of an entry's name as tells it from others.
std::string short_name(const TunedEntry& entry);

// What was measured, and what kind of problem it stands for.
std::string problem_of(const TunedEntry& entry);

// The time over that of the heuristic's choice.
double ratio(const TunedEntry& entry);

base::Json tuned_json(const TunedEntry& entry);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
