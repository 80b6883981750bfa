#ifndef ANNULUS_SIMULATOR_RUNTIME_COPIES_H_
#define ANNULUS_SIMULATOR_RUNTIME_COPIES_H_

// Converts copies in the form of the runtime to the form of the driver.

#include "simulator/runtime/types.h"

namespace annulus::simulator::runtime {

// Throws cudaErrorInvalidMemcpyDirection if `kind` is not a cudaMemcpyKind.
void check_kind(int kind);

// Throws cudaErrorInvalidPitchValue if rows are longer than their pitch, and cudaErrorNotSupported
// for arrays.
DriverCopy3D driver_copy(const Copy3D& copy);

// A copy of contiguous bytes, as a copy of one row.
Copy3D row_copy(void* to, const void* from, std::size_t bytes, int kind);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_COPIES_H_
