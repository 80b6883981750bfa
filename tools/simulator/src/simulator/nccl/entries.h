#ifndef ANNULUS_SIMULATOR_NCCL_ENTRIES_H_
#define ANNULUS_SIMULATOR_NCCL_ENTRIES_H_

// The functions of the simulated NCCL: one for each slot of the table, under the name of its
// member. NVIDIA documents them under their symbols in "NCCL API". docs/simulator.md lists what the
// simulated NCCL adds, and how it differs.

#include <cstddef>
#include <string>
#include <string_view>

#include "abi/nccl_table.h"

namespace annulus::simulator::nccl {

namespace entry {
using namespace annulus::abi;  // the declarations below use its types
#define REQUIRED(result, member, symbol, parameters) result member parameters;
#define OPTIONAL(result, member, symbol, parameters) result member parameters;
#include "abi/nccl.def"
#undef REQUIRED
#undef OPTIONAL
}  // namespace entry

// The table for a program that has the simulator linked. Slots of functions that the NCCL version
// of the options does not have are null.
abi::NcclTable make_table();

// Returns the code, and makes the text the one that ncclGetLastError returns.
abi::NcclResult say(abi::NcclResult code, std::string text);

// The entry of this symbol, or null if there is none.
void* find_entry(std::string_view symbol);

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_ENTRIES_H_
