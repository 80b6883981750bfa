#ifndef ANNULUS_ATTENTION_COST_PIPE_CONSTANTS_H_
#define ANNULUS_ATTENTION_COST_PIPE_CONSTANTS_H_

// The constants of the pipe model (pipe_model.h), which pipe_constants.def lists with their
// intervals and sources.

#include <span>

namespace annulus::attention {

struct PipeConstants {
#define CONSTANT(name, value, least, most, unit, source) double name = value;
#include "attention/cost/pipe_constants.def"
#undef CONSTANT
};

struct PipeConstant {
  const char* name;
  double PipeConstants::*value;
  double least, most;  // the interval in which the value may lie
  const char* unit;
  const char* source;
};

// All constants, in the order of the list.
std::span<const PipeConstant> pipe_constants();

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_PIPE_CONSTANTS_H_
