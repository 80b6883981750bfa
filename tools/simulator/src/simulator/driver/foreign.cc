// Linked only into libcuda.so.1, which is used by programs that were written for a CUDA driver.

#include "simulator/driver/objects/start_options.h"

namespace {

const bool told = [] {
  annulus::simulator::driver::serve_foreign_programs();
  return true;
}();

}  // namespace
