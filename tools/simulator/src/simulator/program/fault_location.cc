#include "simulator/program/fault_location.h"

#include <fmt/core.h>

#include <string>

namespace annulus::simulator {

void locate(Fault& fault, const Program& program, std::uint32_t pc) {
  fault.kernel = program.info.name;
  if (pc >= program.code.size()) return;
  const ptx::Instruction& instruction = *program.instructions[pc];
  fault.ptx_line = instruction.line;
  fault.instruction = to_string(*program.functions[pc], instruction);
  const ptx::Module& module = *program.module;
  bool chosen = false;
  int frames = 0;
  // Follows the chain of inlined lines outwards. The bound ends chains of files that form a cycle.
  for (int at = instruction.location; at >= 0 && frames < 64; ++frames) {
    const ptx::Location& location = module.locations[static_cast<std::size_t>(at)];
    const std::string* name = module.file_name(location.file);
    const std::string file = name != nullptr ? *name : fmt::format("file {}", location.file);
    if (!fault.trace.empty()) fault.trace += " < ";
    fault.trace += fmt::format("{}:{}", file, location.line);
    // A wrapper of one instruction is never the cause, so the first line outside of a wrapper is
    // named.
    const bool wrapper = file.find("/ptx/") != std::string::npos;
    if (!chosen && (!wrapper || location.inlined_at < 0)) {
      fault.file = file;
      fault.line = location.line;
      chosen = true;
    }
    at = location.inlined_at;
  }
  if (frames < 2) fault.trace.clear();
}

}  // namespace annulus::simulator
