#include "simulator/run/load.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <vector>

#include "base/fail.h"
#include "base/math.h"
#include "simulator/decode/decoder.h"
#include "simulator/ops/opcodes.h"
#include "simulator/program/address_spaces.h"
#include "simulator/ptx/parser.h"

namespace annulus::simulator {
namespace {

std::uint32_t align_to(std::uint32_t value, std::uint64_t unit) {
  const auto step = static_cast<std::uint32_t>(std::max<std::uint64_t>(unit, 1));
  return base::round_up(value, step);
}

constexpr std::uint64_t kRegisters = 65536;  // number on a multiprocessor

// The registers of a thread at the start of a kernel with setmaxnreg, as ptxas 13.0 chooses them.
// With .maxnreg it is that number. If threads and CTAs are both bounded, it is the largest number
// that fits into a multiprocessor, but not more than the largest setmaxnreg. Without either it is
// 0, because ptxas then ignores setmaxnreg (its note C7508). Registers are allocated in units of 8
// for each thread, and for whole warpgroups.
std::uint32_t launch_registers(const ptx::Function& function, std::uint32_t largest) {
  if (largest == 0) return 0;
  if (function.max_registers != 0) return base::round_up(function.max_registers, 8u);
  if (function.max_threads == 0 || function.min_ctas == 0) return 0;
  const std::uint64_t threads = base::round_up(std::uint64_t{function.max_threads}, 4 * kLanes);
  const std::uint64_t fit = kRegisters / (threads * function.min_ctas) / 8 * 8;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, largest));
}

// An upper estimate of a thread's registers: the limit of .maxnreg, or the number with which the
// CTAs of .maxntid and .minnctapersm fit. No compiler would exceed it.
std::uint32_t bounded_registers(const ptx::Function& function, std::uint32_t estimate) {
  if (function.max_registers != 0) return std::min<std::uint32_t>(estimate, function.max_registers);
  if (function.max_threads == 0) return estimate;
  const std::uint64_t threads = base::round_up(std::uint64_t{function.max_threads}, 4 * kLanes);
  const std::uint64_t ctas = std::max<std::uint64_t>(function.min_ctas, 1);
  const std::uint64_t fit = kRegisters / (threads * ctas) / 8 * 8;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(estimate, 1, std::max(fit, 16ul)));
}

// 90 for "sm_90a"; 0 if there is no such number.
int target_number(std::string_view target) {
  int number = 0;
  if (target.starts_with("sm_")) {
    std::from_chars(target.data() + 3, target.data() + target.size(), number);
  }
  return number;
}

// Limits of ptxas.
constexpr std::uint64_t kMaxConstantBytes = 0x10000;     // limit of a module
constexpr std::uint64_t kMaxStaticSharedBytes = 0xc000;  // limit of a kernel

using NameSet = std::set<std::string, std::less<>>;

void add_names(const std::vector<ptx::Operand>& operands, NameSet* names) {
  for (const ptx::Operand& operand : operands) {
    if (!operand.text.empty()) names->insert(operand.text);
    add_names(operand.elements, names);
  }
}

class Loaded final : public LoadedModule {
 public:
  Loaded(std::string_view text, GlobalMemory& memory) : module_(ptx::parse(text)), memory_(memory) {
    try {
      place_functions();
      place_globals();
      for (const ptx::Function& function : module_.functions) {
        if (function.entry && !function.declaration) decode(function);
      }
    } catch (...) {
      release();
      throw;
    }
  }
  ~Loaded() override { release(); }

  const KernelInfo* kernel(std::string_view name) const override {
    const Program* found = program(name);
    return found != nullptr ? &found->info : nullptr;
  }
  const Program* program(std::string_view name) const override {
    const auto found = programs_.find(name);
    return found != programs_.end() ? found->second.get() : nullptr;
  }
  std::vector<std::string_view> kernels() const override {
    std::vector<std::string_view> names;
    for (const auto& [name, program] : programs_) names.push_back(name);
    return names;
  }
  std::span<const GlobalVariable> variables() const override { return variables_; }

 private:
  void release() {
    for (const GlobalVariable& variable : variables_) {
      if (variable.address != 0) memory_.release(variable.address);
    }
  }

  void place_functions() {
    std::uint64_t next = kFunctionWindow;
    for (const ptx::Function& function : module_.functions) {
      if (placement_.functions.try_emplace(function.name, next).second) next += 16;
    }
  }

  // The address of a symbol in an initial value, or 0 if there is no such symbol.
  std::uint64_t address_of(const std::string& symbol) const {
    for (const auto* places : {&placement_.global, &placement_.functions}) {
      if (const auto found = places->find(symbol); found != places->end()) return found->second;
    }
    return 0;
  }

  static bool is_global(const ptx::Variable& variable) {
    return variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst;
  }

  // Refuses variables that are too large before any memory is allocated for them.
  void check_sizes() const {
    std::uint64_t constant = 0;
    std::uint64_t global = 0;
    for (const ptx::Variable& variable : module_.variables) {
      if (variable.space == ptx::Space::kConst) {
        constant = base::round_up(constant, std::max<std::uint64_t>(variable.alignment, 1));
        constant += variable.bytes;
        if (constant > kMaxConstantBytes) {
          base::fail(ErrorCode::kParse,
                     "the .const variables up to '{}' have {} bytes; a module may have at most {}",
                     variable.name, constant, kMaxConstantBytes);
        }
      } else if (variable.space == ptx::Space::kGlobal) {
        global += variable.bytes;
        if (global > memory_.capacity() - memory_.used()) {
          base::fail(ErrorCode::kOutOfMemory,
                     "the .global variables up to '{}' have {} bytes; of the device's memory {} "
                     "are free",
                     variable.name, global, memory_.capacity() - memory_.used());
        }
      }
    }
  }

  // Every .global and .const variable gets a separate allocation, so that an access past its end is
  // out of bounds. Addresses in initial values are filled in when all variables have an allocation.
  void place_globals() {
    check_sizes();
    for (const ptx::Variable& variable : module_.variables) {
      if (!is_global(variable)) continue;
      if (variable.external) {
        base::fail(ErrorCode::kUnsupported,
                   "extern variable '{}' has no definition in this module; link it with the PTX "
                   "that defines it",
                   variable.name);
      }
      // The record comes first, so that release() has the list of all allocations.
      variables_.push_back({variable.name, 0, variable.bytes});
      const std::uint64_t address = memory_.allocate(std::max<std::uint64_t>(variable.bytes, 1));
      if (address == 0) {
        base::fail(ErrorCode::kOutOfMemory, "there are no {} bytes for variable '{}'",
                   variable.bytes, variable.name);
      }
      variables_.back().address = address;
      // Bytes without an initial value are zero (PTX ISA).
      memory_.zero_new(address, variable.bytes);
      memory_.write(address, variable.initial.data(), variable.initial.size());
      placement_.global[variable.name] = address;
    }
    for (const ptx::Variable& variable : module_.variables) {
      for (const ptx::Relocation& relocation : variable.relocations) {
        const std::uint64_t target = address_of(relocation.symbol);
        const auto holder = placement_.global.find(variable.name);
        if (target == 0 || holder == placement_.global.end()) {
          base::fail(ErrorCode::kUnsupported,
                     "the initial value of '{}' cannot be the address of '{}'", variable.name,
                     relocation.symbol);
        }
        const std::uint64_t value = target + relocation.addend;
        memory_.write(holder->second + relocation.offset, &value, sizeof value);
      }
    }
  }

  // The names that a kernel uses, or a function that it may call. Functions that are called through
  // a register are included, because the parser turns such a call into calls by name.
  NameSet used_names(const ptx::Function& kernel) const {
    NameSet used;
    std::vector<const ptx::Function*> left = {&kernel};
    while (!left.empty()) {
      const ptx::Function& function = *left.back();
      left.pop_back();
      NameSet fresh;
      for (const ptx::Instruction& instruction : function.code) {
        add_names(instruction.operands, &fresh);
      }
      for (const ptx::Function& other : module_.functions) {
        if (fresh.contains(other.name) && !used.contains(other.name)) left.push_back(&other);
      }
      used.merge(fresh);
    }
    return used;
  }

  // Lays out the parameters and the shared memory of a kernel, and decodes it. Shared memory holds
  // the variables of the module and of its functions that the kernel uses, or a function that it
  // may call. Like in ptxas, an extern variable with a size counts as a variable without extern.
  void decode(const ptx::Function& function) {
    auto program = std::make_unique<Program>();
    program->module = &module_;
    KernelInfo& info = program->info;
    info.name = function.name;
    info.target = target_number(module_.target);
    info.max_threads = function.max_threads != 0 ? function.max_threads : 1024;
    std::copy_n(function.cluster, 3, info.cluster);
    for (const ptx::Variable& parameter : function.parameters) {
      info.parameter_bytes = align_to(info.parameter_bytes, parameter.alignment);
      info.parameter_offsets.push_back(info.parameter_bytes);
      info.parameter_sizes.push_back(static_cast<std::uint32_t>(parameter.bytes));
      info.parameter_bytes += static_cast<std::uint32_t>(parameter.bytes);
    }
    // Static variables come first. Variables whose size the launch gives follow, and all start at
    // one address.
    Placement placement = placement_;
    std::uint64_t end = 0;
    std::uint64_t dynamic_alignment = 16;
    const NameSet used = used_names(function);
    const auto for_shared = [&](const auto& visit) {
      const auto visit_used = [&](const ptx::Variable& variable) {
        if (variable.space == ptx::Space::kShared && used.contains(variable.name)) visit(variable);
      };
      std::ranges::for_each(module_.variables, visit_used);
      for (const ptx::Function& other : module_.functions) {
        if (&other == &function || !other.entry) std::ranges::for_each(other.variables, visit_used);
      }
    };
    const auto place = [&](const ptx::Variable& variable) {
      end = base::round_up(end, std::max<std::uint64_t>(variable.alignment, 1));
      placement.shared[variable.name] = kSharedBase + static_cast<std::uint32_t>(end);
      end += variable.bytes;
      if (end > kMaxStaticSharedBytes) {
        base::fail(ErrorCode::kParse,
                   "the .shared variables of kernel '{}' up to '{}' have {} bytes; a kernel may "
                   "have {}, and more if the launch gives the size",
                   function.name, variable.name, end, kMaxStaticSharedBytes);
      }
    };
    for_shared([&](const ptx::Variable& variable) {
      if (variable.bytes == 0) {
        dynamic_alignment = std::max(dynamic_alignment, variable.alignment);
      } else if (!variable.external) {
        place(variable);
      }
    });
    // A text of a link may declare a variable that another text defines.
    for_shared([&](const ptx::Variable& variable) {
      const bool defined = placement.shared.contains(variable.name);
      if (variable.bytes != 0 && variable.external && !defined) place(variable);
    });
    info.static_shared_bytes = static_cast<std::uint32_t>(end);
    program->dynamic_shared_offset = align_to(info.static_shared_bytes, dynamic_alignment);
    for_shared([&](const ptx::Variable& variable) {
      if (variable.bytes == 0) {
        placement.shared[variable.name] = kSharedBase + program->dynamic_shared_offset;
      }
    });
    Decoder(module_, function, placement, find_opcode, *program).run();
    info.max_registers = launch_registers(function, program->largest_setmaxnreg);
    info.registers = bounded_registers(function, info.registers);
    programs_[function.name] = std::move(program);
  }

  ptx::Module module_;
  GlobalMemory& memory_;
  std::vector<GlobalVariable> variables_;
  Placement placement_;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs_;
};

}  // namespace

std::shared_ptr<LoadedModule> LoadedModule::load(std::string_view ptx, GlobalMemory& memory) {
  return std::make_shared<Loaded>(ptx, memory);
}

}  // namespace annulus::simulator
