#ifndef ANNULUS_PROGRAM_RUN_OPERANDS_H_
#define ANNULUS_PROGRAM_RUN_OPERANDS_H_

// Host tensors as the operands of a run on a device, and as inputs of the oracle.

#include "annulus/device.h"
#include "annulus/oracle.h"
#include "program/input/host_tensor.h"

namespace annulus::program {

// Q, K and V with their scales, O and LSE on a device, and the operands that point to them.
struct DeviceOperands {
  DeviceMemory q, k, v, o, lse, scale_q, scale_k, scale_v;
  Operands operands;
};

// Allocates and copies all tensors. O is copied too, so elements that a kernel does not write keep
// the host's mark. LSE has the rows of O.
DeviceOperands upload(const Device& device, const HostTensor& q, const HostTensor& k,
                      const HostTensor& v, const HostTensor& o);

// The inputs point into the tensors.
HostInputs host_inputs(const HostTensor& q, const HostTensor& k, const HostTensor& v);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_OPERANDS_H_
