#include "program/cli/traced.h"

#include <exception>

#include "annulus/observe.h"
#include "base/fail.h"
#include "base/files.h"

namespace annulus::program {

Exit traced(const DeviceArguments& arguments, const std::function<Exit()>& verb) {
  if (arguments.trace.empty()) return verb();
  // So that no file of operands, patterns or tuned results is lost by a slip.
  if (!arguments.trace.ends_with(".json")) {
    base::fail(ErrorCode::kInvalidArgument,
               "--trace is '{}', but the output is JSON; name it .json", arguments.trace);
  }
  base::FileSystem files;
  base::check_can_write(files, arguments.trace);
  start_trace();
  Exit exit;
  try {
    exit = verb();
  } catch (...) {
    try {
      write_trace(arguments.trace);
    } catch (const std::exception&) {
      // Why the verb failed matters more than that nothing can be written now.
    }
    throw;
  }
  write_trace(arguments.trace);
  return exit;
}

}  // namespace annulus::program
