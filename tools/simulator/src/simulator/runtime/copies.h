#ifndef ANNULUS_SIMULATOR_RUNTIME_COPIES_H_
#define ANNULUS_SIMULATOR_RUNTIME_COPIES_H_

// Copies as the runtime describes them, made into copies as the driver does.

#include "simulator/runtime/types.h"

namespace annulus::simulator::runtime {

// Throws cudaErrorInvalidMemcpyDirection for what is no cudaMemcpyKind.
void check_kind(int kind);

// Throws cudaErrorInvalidPitchValue where rows are longer than their pitch, and
// cudaErrorNotSupported for arrays.
DriverCopy3D driver_copy(const Copy3D& copy);

// Bytes one after another, as a copy of one row.
Copy3D row_copy(void* to, const void* from, std::size_t bytes, int kind);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_COPIES_H_
