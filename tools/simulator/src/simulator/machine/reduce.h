#ifndef ANNULUS_SIMULATOR_MACHINE_REDUCE_H_
#define ANNULUS_SIMULATOR_MACHINE_REDUCE_H_

// The reductions of cp.reduce.async.bulk (PTX ISA 9.0, sections 9.7.9.25.4.2 and 9.7.9.25.5.3).
// Each element is combined by a separate atomic, in no defined order.

#include <cstddef>
#include <cstdint>

#include "simulator/machine/bulk_copies.h"

namespace annulus::simulator {

// Whether the ISA has the operation for elements of this type.
bool can_reduce(Reduction reduction, TensorType type);

// Combines `bytes` bytes of elements at `data` into global memory. Requires: can_reduce.
void reduce_global(Reduction reduction, TensorType type, std::uint64_t address,
                   const std::byte* data, std::uint32_t bytes);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_REDUCE_H_
