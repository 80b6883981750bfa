#ifndef ANNULUS_JIT_RESOURCE_USAGE_H_
#define ANNULUS_JIT_RESOURCE_USAGE_H_

// The resources that a kernel uses on the chip, read from its cubin and from the output of ptxas.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::jit {

struct ResourceUsage {
  bool known = false;         // false for PTX, whose registers are allocated when it is assembled
  int registers = 0;          // registers of each thread
  int spill_store_bytes = 0;  // bytes of each thread, as in the next two members
  int spill_load_bytes = 0;
  int local_bytes = 0;          // stack frame: spills, and arrays that are indexed at run time
  int static_shared_bytes = 0;  // bytes of each block
  // Warnings of ptxas, such as the C75xx notes about serialised wgmma instructions.
  std::vector<std::string> notes;

  friend bool operator==(const ResourceUsage&, const ResourceUsage&) = default;
};

// For example "164 registers, no spills, no local memory, 1200 bytes of static shared memory".
std::string to_string(const ResourceUsage& usage);

// Reads the output of -Xptxas -v. If it has several functions, because a device function was not
// inlined, the largest value of each resource is used. `known` is false if it has none.
ResourceUsage parse_compile_log(std::string_view log);

// The resources of one kernel that its cubin states.
struct CubinUsage {
  int registers = 0;
  int frame_bytes = 0;
  int static_shared_bytes = 0;
};
// Returns nothing if the bytes are not a 64-bit ELF file or do not mention the kernel.
std::optional<CubinUsage> read_cubin(std::span<const std::byte> cubin, std::string_view symbol);

// Combines both sources: registers, frame and shared memory from the cubin, spills and notes from
// the log.
ResourceUsage resource_usage(std::span<const std::byte> cubin, std::string_view symbol,
                             std::string_view log);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_RESOURCE_USAGE_H_
