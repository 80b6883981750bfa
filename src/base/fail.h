#ifndef ANNULUS_BASE_FAIL_H_
#define ANNULUS_BASE_FAIL_H_

// Throws an Error with a formatted message:
//   base::fail(ErrorCode::kInvalidArgument, "head dim {} is not supported; use one of {}", d, all);

#include <fmt/core.h>

#include <utility>

#include "annulus/types.h"

namespace annulus::base {

template <typename... Arguments>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  throw Error(code, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FAIL_H_
