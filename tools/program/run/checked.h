#ifndef ANNULUS_PROGRAM_RUN_CHECKED_H_
#define ANNULUS_PROGRAM_RUN_CHECKED_H_

// The result of the comparison with the oracle, and its output by annulus run.

#include <optional>
#include <string>

#include "annulus/oracle.h"
#include "base/json.h"
#include "program/cli/exit.h"

namespace annulus::program {

struct Checked {
  std::optional<Comparison> comparison = {};  // empty if nothing was to be checked
  bool sampled = false;                       // some rows were not compared

  // Rows were to be compared, but every one of them read a NaN or an infinity.
  bool compared_nothing() const {
    return comparison && comparison->checked_rows == 0 && comparison->tainted_rows > 0;
  }
  bool wrong() const { return comparison && !comparison->within_tolerance; }
};

std::string check_text(const Checked& checked);
void add_check(const Checked& checked, base::Json* json);

// Returns the exit code. Reports a wrong result on stderr.
Exit exit_of(const Checked& checked);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_CHECKED_H_
