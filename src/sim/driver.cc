#include "sim/driver.h"

#include "sim/driver/entries.h"

namespace annulus::sim {

abi::CudaTable make_cuda_table() {
  abi::CudaTable table;
#define REQUIRED(member, symbol, parameters) table.member = &driver::entry::member;
#define OPTIONAL(member, symbol, parameters) table.member = &driver::entry::member;
#include "abi/cuda.def"
#undef REQUIRED
#undef OPTIONAL
  return table;
}

}  // namespace annulus::sim
