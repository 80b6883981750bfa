#include "simulator/driver/driver.h"

#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {

abi::CudaTable make_cuda_table() {
  abi::CudaTable table;
#define SLOT(member, symbol, parameters) table.member = &driver::entry::member;
#include "abi/cuda.def"
  return table;
}

}  // namespace annulus::simulator
