#include "annulus/types.h"

namespace annulus::inline v0 {

// The switch has no default, so that the compiler warns if a code is missing in errors.def.
const char* to_string(ErrorCode code) {
  switch (code) {
#define ANNULUS_ERROR(code, c_code, number, text)               \
  case ErrorCode::code:                                         \
    static_assert(static_cast<int>(ErrorCode::code) == number); \
    return text;
#include "base/errors.def"
#undef ANNULUS_ERROR
  }
  return "unknown error";
}

const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return "fp16";
    case Dtype::kBfloat16:
      return "bf16";
    case Dtype::kFloat32:
      return "fp32";
    case Dtype::kFloat8E4M3:
      return "e4m3";
  }
  return "unknown dtype";
}

const char* to_string(LseBase base) { return base == LseBase::kNatural ? "natural" : "two"; }

}  // namespace annulus::inline v0
