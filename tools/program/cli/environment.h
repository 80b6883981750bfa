#ifndef ANNULUS_PROGRAM_CLI_ENVIRONMENT_H_
#define ANNULUS_PROGRAM_CLI_ENVIRONMENT_H_

// The environment variables of the library with their meanings, for texts that users read.

#include <span>
#include <string>
#include <string_view>

#include "base/env.h"

namespace annulus::program {

struct Variable {
  std::string_view name;
  std::string base::Environment::*value;
  std::string_view meaning;
};
std::span<const Variable> environment_variables();

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_ENVIRONMENT_H_
