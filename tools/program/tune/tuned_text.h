#ifndef ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
#define ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_

// Tuned results as the verbs of `annulus tuned` print them.

#include <cstdint>
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

// "13.0" for 13000.
std::string version_text(std::int64_t version);
// "2026-03-01 12:30 UTC" for seconds since 1970; "?" before then and after the year 9999.
std::string date_text(std::int64_t when);

base::Json tuned_json(const TunedEntry& entry);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
