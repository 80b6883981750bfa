#include "program/run/checked.h"

#include <fmt/core.h>

#include <cstdio>

#include "program/cli/output.h"

namespace annulus::program {

std::string check_text(const Checked& checked) {
  if (!checked.comparison) return "not checked";
  const Comparison& made = *checked.comparison;
  if (checked.compared_nothing()) {
    return fmt::format("nothing was compared: all {} rows read a NaN or an infinity",
                       made.tainted_rows);
  }
  const std::string text = fmt::format("row {:.2e}, head {:.2e}, LSE {:.2e} over {} {}rows: {}",
                                       made.error_row_max, made.error_o, made.error_lse,
                                       made.checked_rows, checked.sampled ? "sampled " : "",
                                       checked.wrong() ? "WRONG" : "within tolerance");
  if (made.tainted_rows == 0) return text;
  return text +
         fmt::format("; {} rows read a NaN or an infinity and are not compared", made.tainted_rows);
}

void add_check(const Checked& checked, base::Json* json) {
  const Comparison made = checked.comparison.value_or(Comparison{});
  // within_law is the former name of within_tolerance.
  for (const char* name :
       {"error_row_max", "error_o", "error_lse", "within_law", "within_tolerance"}) {
    (*json)[name] = nullptr;
  }
  if (checked.comparison) {
    (*json)["error_row_max"] = number(made.error_row_max);
    (*json)["error_o"] = number(made.error_o);
    (*json)["error_lse"] = number(made.error_lse);
    if (!checked.compared_nothing()) {
      (*json)["within_law"] = (*json)["within_tolerance"] = made.within_tolerance;
    }
  }
  (*json)["compared_nothing"] = checked.compared_nothing();
  (*json)["checked_rows"] = made.checked_rows;
  (*json)["tainted_rows"] = made.tainted_rows;
}

Exit exit_of(const Checked& checked) {
  if (!checked.wrong()) return checked.compared_nothing() ? Exit::kPartial : Exit::kOk;
  const std::string& where = checked.comparison->first_wrong;
  std::fprintf(stderr, "annulus run: wrong result: %s\n",
               where.empty() ? "a head is beyond the tolerance" : where.c_str());
  return Exit::kWrongResult;
}

}  // namespace annulus::program
