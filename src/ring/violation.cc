#include "ring/violation.h"

namespace annulus::ring {

const char* to_string(Violation::Kind kind) {
  using Kind = Violation::Kind;
  switch (kind) {
    case Kind::kPairMissing:
      return "pair missing";
    case Kind::kPairTwice:
      return "pair twice";
    case Kind::kPairHidden:
      return "pair hidden";
    case Kind::kUnmatched:
      return "unmatched";
    case Kind::kNotThere:
      return "not there";
    case Kind::kOverwritten:
      return "overwritten";
    case Kind::kStuck:
      return "stuck";
    case Kind::kState:
      return "state";
    case Kind::kTooMany:
      return "too many launches";
    case Kind::kUnneeded:
      return "unneeded";
    case Kind::kTooMuch:
      return "too much";
    case Kind::kIllFormed:
      return "ill-formed";
  }
  return "unknown";
}

}  // namespace annulus::ring
