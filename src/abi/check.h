#ifndef ANNULUS_ABI_CHECK_H_
#define ANNULUS_ABI_CHECK_H_

// Turns a return code into an Error that names the call, the code in the library's own words and
// the place in our source:
//
//   check(table, table.mem_alloc(&pointer, bytes), "cuMemAlloc");
//
// On success the check is one inlined comparison; everything else is out of line.

#include <source_location>

#include "abi/cuda_table.h"
#include "abi/nccl_table.h"
#include "abi/nvrtc_table.h"

namespace annulus::abi {

// After one of these the context is lost: every later call in it returns the same code.
bool is_sticky(CUresult code);

// Throws Error{kOutOfMemory} when memory ran out, Error{kFault} for the sticky codes (with the
// simulator's message about the kernel, on a simulated device), else Error{kDevice}.
[[noreturn]] void fail(const CudaTable& table, CUresult code, const char* call,
                       const std::source_location& where);

// Throws Error{kCompile} when the source, an option or a name is at fault, Error{kOutOfMemory} when
// memory ran out, else Error{kLibrary}.
[[noreturn]] void fail(const NvrtcTable& table, NvrtcResult code, const char* call,
                       const std::source_location& where);

// Throws Error{kDevice}, with NCCL's last message.
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
