#ifndef ANNULUS_SIMULATOR_RUN_LOAD_H_
#define ANNULUS_SIMULATOR_RUN_LOAD_H_

// Makes kernels that can be launched from the text of a module.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/machine/memory.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

struct GlobalVariable {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// A PTX module loaded on a device: its kernels, and its .global and .const variables, which are
// allocated in `memory` and released with the module.
class LoadedModule {
 public:
  // Throws Error{kParse} (with the PTX line) or Error{kUnsupported}. The message names the
  // instruction.
  static std::shared_ptr<LoadedModule> load(std::string_view ptx, GlobalMemory& memory);
  virtual ~LoadedModule() = default;

  // null if there is no such kernel
  virtual const KernelInfo* kernel(std::string_view name) const = 0;
  virtual const Program* program(std::string_view name) const = 0;
  virtual std::vector<std::string_view> kernels() const = 0;  // their names, sorted
  virtual std::span<const GlobalVariable> variables() const = 0;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_LOAD_H_
