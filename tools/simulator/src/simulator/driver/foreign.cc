// Linked into libcuda.so.1 alone, which programs use that were written for a CUDA driver.

#include "simulator/driver/objects/start_options.h"

namespace {

const bool told = [] {
  annulus::simulator::driver::serve_foreign_programs();
  return true;
}();

}  // namespace
