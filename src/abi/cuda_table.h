#ifndef ANNULUS_ABI_CUDA_TABLE_H_
#define ANNULUS_ABI_CUDA_TABLE_H_

// The CUDA driver as a struct of function pointers. It is filled from libcuda.so.1 or from the
// simulator's library (abi/libraries.h). Code that receives a table does not depend on which driver
// it is. Functions that only a simulator has are optional entries of the same table.

#include "abi/cuda_types.h"

namespace annulus::abi {

struct CudaTable {
#define SLOT(member, symbol, parameters) CUresult(*member) parameters = nullptr;
#include "abi/cuda.def"
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_CUDA_TABLE_H_
