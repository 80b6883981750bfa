#ifndef ANNULUS_JIT_RESOURCE_USAGE_H_
#define ANNULUS_JIT_RESOURCE_USAGE_H_

// What a kernel costs on the chip, read back from its cubin and from what ptxas says.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::jit {

struct ResourceUsage {
  bool known = false;         // false for PTX: registers are dealt out when it is assembled
  int registers = 0;          // per thread
  int spill_store_bytes = 0;  // per thread, as are the next two
  int spill_load_bytes = 0;
  int local_bytes = 0;             // stack frame: spills, and arrays that are indexed at run time
  int static_shared_bytes = 0;     // per block
  std::vector<std::string> notes;  // what ptxas calls attention to, such as the C75xx notes about
                                   // wgmma that was serialised

  friend bool operator==(const ResourceUsage&, const ResourceUsage&) = default;
};

// "164 registers, no spills, no local memory, 1200 bytes of static shared memory".
std::string to_string(const ResourceUsage& usage);

// From the output of -Xptxas -v. Where the log speaks of several functions (a device function that
// was not inlined), the largest of each counts. known is false where it speaks of none.
ResourceUsage parse_compile_log(std::string_view log);

// What the cubin itself states of one kernel: registers, frame and static shared memory.
struct CubinUsage {
  int registers = 0;
  int frame_bytes = 0;
  int static_shared_bytes = 0;
};
// Nothing where the bytes are no 64-bit ELF file or do not mention the kernel.
std::optional<CubinUsage> read_cubin(std::span<const std::byte> cubin, std::string_view symbol);

// Both together: the cubin decides on what it states, the log on spills and notes.
ResourceUsage resource_usage(std::span<const std::byte> cubin, std::string_view symbol,
                             std::string_view log);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_RESOURCE_USAGE_H_
