#include "attention/cost/pipe_constants.h"

namespace annulus::attention {

std::span<const PipeConstant> pipe_constants() {
  static constexpr PipeConstant kConstants[] = {
#define CONSTANT(name, value, least, most, unit, source) \
  {#name, &PipeConstants::name, least, most, unit, source},
#include "attention/cost/pipe_constants.def"
#undef CONSTANT
  };
  return kConstants;
}

}  // namespace annulus::attention
