#ifndef ANNULUS_SIMULATOR_OPS_OPCODES_H_
#define ANNULUS_SIMULATOR_OPS_OPCODES_H_

#include <string_view>

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

// The function that decodes an opcode, from ops/opcodes.def; null if the opcode has no line there.
DecodeFunction find_opcode(std::string_view opcode);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_OPCODES_H_
