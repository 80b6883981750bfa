#ifndef ANNULUS_PROGRAM_CLI_EXIT_H_
#define ANNULUS_PROGRAM_CLI_EXIT_H_

// The exit codes of all verbs.

#include <span>
#include <string_view>

#include "annulus/types.h"

namespace annulus::program {

enum class Exit : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kPartial = 3,  // not everything was done, or nothing was compared
  kDevice = 4,
  kInvalidFile = 5,
  kWrongResult = 6,
};

Exit exit_code(ErrorCode code);

// The exit codes with their meanings.
struct ExitMeaning {
  Exit exit;
  std::string_view meaning;
};
std::span<const ExitMeaning> exit_meanings();

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_EXIT_H_
