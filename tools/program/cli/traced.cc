#include "program/cli/traced.h"

#include <exception>

#include "annulus/observe.h"
#include "base/fail.h"
#include "base/files.h"

namespace annulus::program {

Exit traced(const DeviceArguments& arguments, const std::function<Exit()>& verb) {
  if (arguments.trace.empty()) return verb();
  // A mistyped path must not overwrite a file of operands, patterns or tuned results.
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
      // The error of the verb matters more than the error of writing the trace.
    }
    throw;
  }
  write_trace(arguments.trace);
  return exit;
}

}  // namespace annulus::program
