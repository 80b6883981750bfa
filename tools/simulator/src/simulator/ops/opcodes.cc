#include "simulator/ops/opcodes.h"

#include <map>

namespace annulus::simulator {

#define OPCODE(name, function) void function(Decoder&);
#include "simulator/ops/opcodes.def"
#undef OPCODE

DecodeFunction find_opcode(std::string_view opcode) {
  static const std::map<std::string_view, DecodeFunction> kOpcodes = {
#define OPCODE(name, function) {name, function},
#include "simulator/ops/opcodes.def"
#undef OPCODE
  };
  const auto found = kOpcodes.find(opcode);
  return found == kOpcodes.end() ? nullptr : found->second;
}

}  // namespace annulus::simulator
