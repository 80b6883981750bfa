#ifndef ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
#define ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_

// Texts that the verbs of `annulus tuned` print about tuned results.

#include <cstdint>
#include <string>

#include "annulus/tune.h"
#include "base/json.h"

namespace annulus::program {

// The first 12 characters of an entry's name, which are enough to distinguish entries.
std::string short_name(const TunedEntry& entry);

// The problem that was measured, and the kind of problems for which it stands.
std::string problem_of(const TunedEntry& entry);

// The time of the tuned configuration divided by the time of the heuristic's choice.
double ratio(const TunedEntry& entry);

// "13.0" for 13000.
std::string version_text(std::int64_t version);
// "2026-03-01 12:30 UTC" for seconds since 1970. "?" before 1970 and after the year 9999.
std::string date_text(std::int64_t when);

base::Json tuned_json(const TunedEntry& entry);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_TUNE_TUNED_TEXT_H_
