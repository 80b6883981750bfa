#ifndef ANNULUS_SIMULATOR_MACHINE_REDUCE_H_
#define ANNULUS_SIMULATOR_MACHINE_REDUCE_H_

// The reductions of cp.reduce.async.bulk (PTX ISA 9.0, sections 9.7.9.25.4.2 and 9.7.9.25.5.3).
// Each element is combined by a separate atomic, in no defined order.

#include <cstddef>
#include <cstdint>
#include <string>

#include "simulator/machine/bulk_copies.h"

namespace annulus::simulator {

// The names of PTX: "add", "s64".
const char* name_of(Reduction reduction);
const char* name_of(TensorType type);

// Whether the ISA has the operation for elements of this type, in global memory or in a tensor of
// it. For .b32 and .b64 a tensor may be of u32, s32 or u64; an H200 refuses s64.
bool can_reduce(Reduction reduction, TensorType type, bool tensor);

// The types of tensors that the reduction can have, as "u32, s32, u64".
std::string reducible_tensors(Reduction reduction);

// Combines `bytes` bytes of elements at `data` into global memory. Requires: can_reduce.
void reduce_global(Reduction reduction, TensorType type, std::uint64_t address,
                   const std::byte* data, std::uint32_t bytes);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_REDUCE_H_
