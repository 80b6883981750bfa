#ifndef ANNULUS_ABI_CHECK_H_
#define ANNULUS_ABI_CHECK_H_

// Converts a return code into an Error that has the call, the code as the library names it, and the
// place in this library's source:
//
//   check(table, table.mem_alloc(&pointer, bytes), "cuMemAlloc");
//
// If the call succeeded, the check is one inlined comparison. All other code is out of line.

#include <source_location>

#include "abi/cuda_table.h"
#include "abi/nccl_table.h"
#include "abi/nvrtc_table.h"

namespace annulus::abi {

// Whether the context is lost after this code. If it is, every later call in the context returns
// the same code.
bool is_sticky(CUresult code);

// Throws Error{kOutOfMemory} if memory ran out, Error{kFault} for the sticky codes, else
// Error{kDevice}. On a simulated device, an Error{kFault} has the simulator's message about the
// kernel.
[[noreturn]] void fail(const CudaTable& table, CUresult code, const char* call,
                       const std::source_location& where);

// Throws Error{kCompile} if the source, an option or a name is invalid, Error{kOutOfMemory} if
// memory ran out, else Error{kLibrary}.
[[noreturn]] void fail(const NvrtcTable& table, NvrtcResult code, const char* call,
                       const std::source_location& where);

// Throws Error{kDevice} with NCCL's last message.
[[noreturn]] void fail(const NcclTable& table, NcclResult code, const char* call,
                       const std::source_location& where);

template <typename Table>
void check(const Table& table, int code, const char* call,
           const std::source_location& where = std::source_location::current()) {
  if (code != 0) [[unlikely]]
    fail(table, code, call, where);
}

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_CHECK_H_
