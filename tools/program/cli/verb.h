#ifndef ANNULUS_PROGRAM_CLI_VERB_H_
#define ANNULUS_PROGRAM_CLI_VERB_H_

// The record of a verb. The source file of each verb defines a record, and verbs.def lists it.

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "program/cli/exit.h"
#include "program/cli/traced.h"

namespace CLI {
class App;
}

namespace annulus::program {

struct Verb {
  std::string_view name;  // "tuned list" is a verb below `tuned`
  std::string_view help;
  std::vector<std::string_view> examples;  // command lines that show typical uses
  // Adds the options to `app`, and returns the function that runs the verb once the options are
  // parsed. That function prints the results to stdout and throws Error.
  std::function<Exit()> (*add)(CLI::App& app);
};

#define VERB(name) extern const Verb verb_##name;
#define GROUP(name, help)
#include "program/cli/verbs.def"

// A function for Verb::add. Parsing the options fills `Arguments`. A verb with the options of a
// device is traced if --trace is given.
template <typename Arguments, void (*add_options)(CLI::App& app, Arguments* arguments),
          Exit (*call)(const Arguments& arguments)>
std::function<Exit()> add_verb(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  add_options(app, arguments.get());
  return [arguments] {
    if constexpr (requires { arguments->device; }) {
      return traced(arguments->device, [&] { return call(*arguments); });
    } else {
      return call(*arguments);
    }
  };
}

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_VERB_H_
