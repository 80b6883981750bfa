#ifndef ANNULUS_PROGRAM_RUN_CHECKED_H_
#define ANNULUS_PROGRAM_RUN_CHECKED_H_

// What the oracle has said of an answer, and how annulus run tells it.

#include <optional>
#include <string>

#include "annulus/oracle.h"
#include "base/json.h"
#include "program/cli/exit.h"

namespace annulus::program {

struct Checked {
  std::optional<Comparison> comparison = {};  // none where nothing was to be checked
  bool sampled = false;                       // not all rows were compared

  // There were rows to compare, but none could be: each read a NaN or an infinity.
  bool compared_nothing() const {
    return comparison && comparison->checked_rows == 0 && comparison->tainted_rows > 0;
  }
  bool wrong() const { return comparison && !comparison->within_tolerance; }
};

std::string check_text(const Checked& checked);
void add_check(const Checked& checked, base::Json* json);

// The exit code, once a wrong result has been told on stderr.
Exit exit_of(const Checked& checked);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_CHECKED_H_
