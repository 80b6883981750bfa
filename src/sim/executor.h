#ifndef ANNULUS_SIM_EXECUTOR_H_
#define ANNULUS_SIM_EXECUTOR_H_

// Runs a decoded kernel over a grid. The driver face (sim/driver.h) sits on top of this.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/cuda_types.h"
#include "sim/detector.h"
#include "sim/fault.h"
#include "sim/memory.h"
#include "sim/operation.h"

namespace annulus::base {
class ThreadPool;
}

namespace annulus::sim {

struct Program;  // a kernel decoded for the interpreter; src/sim/program.h

// What the driver face needs to know of a kernel.
struct KernelInfo {
  std::string name;
  std::vector<std::uint32_t> parameter_offsets;  // in the parameter block, one per parameter
  std::vector<std::uint32_t> parameter_sizes;    // in bytes
  std::uint32_t parameter_bytes = 0;             // of the whole block
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;     // per thread
  std::uint32_t max_threads = 1024;  // .maxntid, else 1024
  std::uint32_t registers = 0;       // an estimate: PTX registers are virtual
  // What setmaxnreg starts from: registers of a thread at launch, 0 where the kernel says nothing
  // from which they follow.
  std::uint32_t max_registers = 0;
  std::uint32_t cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0: not given
};

struct GlobalVariable {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// A PTX module loaded on a device: its kernels, and its .global and .const variables placed in
// `memory` (released with the module).
class LoadedModule {
 public:
  // Throws Error{kParse} (with the PTX line) or Error{kUnsupported}, naming the instruction.
  static std::shared_ptr<LoadedModule> load(std::string_view ptx, GlobalMemory& memory);
  virtual ~LoadedModule() = default;

  virtual const KernelInfo* kernel(std::string_view name) const = 0;  // null: no such kernel
  virtual const Program* program(std::string_view name) const = 0;
  virtual std::span<const GlobalVariable> variables() const = 0;
};

struct LaunchRequest {
  const Program* program = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cluster[3] = {1, 1, 1};  // divides the grid
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;    // parameter_bytes of them
  std::uint32_t shared_limit = 0;           // per CTA; a launch above it is refused by the caller
  std::uint64_t max_warp_instructions = 0;  // per CTA; 0: unlimited
  std::span<const PeerMemory> peers;        // of all other devices that have memory
  // For the checked twin to look for races in global memory; both null: it does not.
  OperationPointer operation;
  Detector* detector = nullptr;
};

// Runs all CTAs, adds to *counters, throws the Fault of the lowest faulting CTA index.
void execute(const LaunchRequest& request, GlobalMemory& memory, base::ThreadPool& pool,
             const abi::SimulatorOptions& options, abi::SimulatorCounters* counters);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_EXECUTOR_H_
