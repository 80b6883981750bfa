#include "sim/executor.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "base/thread_pool.h"
#include "ptx/parser.h"
#include "sim/cluster.h"
#include "sim/context.h"
#include "sim/decode.h"
#include "sim/run.h"

namespace annulus::sim {
namespace {

std::uint32_t align_to(std::uint32_t value, std::uint64_t unit) {
  const auto step = static_cast<std::uint32_t>(std::max<std::uint64_t>(unit, 1));
  return (value + step - 1) / step * step;
}

// The registers that a thread of a kernel with setmaxnreg starts with, as ptxas 13.0 chooses them:
// as many as fit when threads and CTAs are both bounded, but not more than any setmaxnreg asks for.
// Without the bounds it ignores setmaxnreg (its note C7508).
std::uint32_t launch_registers(const ptx::Function& function, std::uint32_t largest) {
  constexpr std::uint32_t kRegisters = 65536;  // of a multiprocessor
  if (largest == 0) return 0;
  if (function.max_registers != 0) return (function.max_registers + 7) / 8 * 8;
  if (function.max_threads == 0 || function.min_ctas == 0) return 0;
  const std::uint32_t warps = (function.max_threads + 4 * kLanes - 1) / (4 * kLanes) * 4;
  const std::uint32_t fit = kRegisters / (warps * kLanes * function.min_ctas) / 8 * 8;
  return std::min(fit, largest);
}

class Loaded final : public LoadedModule {
 public:
  Loaded(std::string_view text, GlobalMemory& memory) : module_(ptx::parse(text)), memory_(memory) {
    try {
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
  std::span<const GlobalVariable> variables() const override { return variables_; }

 private:
  void release() {
    for (const GlobalVariable& variable : variables_) memory_.release(variable.address);
  }

  // Every .global and .const variable gets memory of its own, so that a neighbour is out of bounds.
  void place_globals() {
    for (const ptx::Variable& variable : module_.variables) {
      if (variable.space != ptx::Space::kGlobal && variable.space != ptx::Space::kConst) continue;
      if (variable.external) {
        base::fail(ErrorCode::kUnsupported, "extern variable '{}': there is no linker here",
                   variable.name);
      }
      const std::uint64_t address = memory_.allocate(std::max<std::uint64_t>(variable.bytes, 1));
      if (address == 0) {
        base::fail(ErrorCode::kOutOfMemory, "no {} bytes for variable '{}'", variable.bytes,
                   variable.name);
      }
      variables_.push_back({variable.name, address, variable.bytes});
      // Without an initializer they are zero, as the ISA says.
      std::vector<std::uint8_t> bytes = variable.initial;
      bytes.resize(variable.bytes);
      memory_.write(address, bytes.data(), bytes.size());
      placement_.global[variable.name] = address;
    }
    for (const ptx::Variable& variable : module_.variables) {
      for (const ptx::Relocation& relocation : variable.relocations) {
        const auto target = placement_.global.find(relocation.symbol);
        const auto holder = placement_.global.find(variable.name);
        if (target == placement_.global.end() || holder == placement_.global.end()) {
          base::fail(ErrorCode::kUnsupported, "the initial value of '{}' is the address of '{}'",
                     variable.name, relocation.symbol);
        }
        const std::uint64_t value = target->second + relocation.addend;
        memory_.write(holder->second + relocation.offset, &value, sizeof value);
      }
    }
  }

  void decode(const ptx::Function& function) {
    auto program = std::make_unique<Program>();
    program->module = &module_;
    KernelInfo& info = program->info;
    info.name = function.name;
    info.max_threads = function.max_threads != 0 ? function.max_threads : 1024;
    std::copy_n(function.cluster, 3, info.cluster);
    for (const ptx::Variable& parameter : function.parameters) {
      info.parameter_bytes = align_to(info.parameter_bytes, parameter.alignment);
      info.parameter_offsets.push_back(info.parameter_bytes);
      info.parameter_sizes.push_back(static_cast<std::uint32_t>(parameter.bytes));
      info.parameter_bytes += static_cast<std::uint32_t>(parameter.bytes);
    }
    // Static shared variables of the module and of every function, then the extern ones, which all
    // start at the same place.
    Placement placement = placement_;
    std::uint32_t end = 0;
    std::uint64_t extern_alignment = 16;
    const auto place = [&](const ptx::Variable& variable) {
      if (variable.space != ptx::Space::kShared) return;
      if (variable.external || variable.bytes == 0) {
        extern_alignment = std::max(extern_alignment, variable.alignment);
        return;
      }
      end = align_to(end, variable.alignment);
      placement.shared[variable.name] = kSharedBase + end;
      end += static_cast<std::uint32_t>(variable.bytes);
    };
    const auto for_shared = [&](const auto& visit) {
      for (const ptx::Variable& variable : module_.variables) visit(variable);
      for (const ptx::Function& other : module_.functions) {
        if (&other != &function && other.entry) continue;
        for (const ptx::Variable& variable : other.variables) visit(variable);
      }
    };
    for_shared(place);
    info.static_shared_bytes = end;
    program->dynamic_shared_offset = align_to(end, extern_alignment);
    for_shared([&](const ptx::Variable& variable) {
      if (variable.space == ptx::Space::kShared && (variable.external || variable.bytes == 0)) {
        placement.shared[variable.name] = kSharedBase + program->dynamic_shared_offset;
      }
    });
    Decoder(module_, function, placement, *program).run();
    info.max_registers = launch_registers(function, program->largest_setmaxnreg);
    programs_[function.name] = std::move(program);
  }

  ptx::Module module_;
  GlobalMemory& memory_;
  std::vector<GlobalVariable> variables_;
  Placement placement_;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs_;
};

void add(const Counts& counts, abi::SimulatorCounters* totals) {
  // The classes stand in SimulatorCounters in the order of Class.
  std::uint64_t* const classes[] = {
      &totals->integer,      &totals->float32,     &totals->conversion,   &totals->special,
      &totals->control,      &totals->barrier,     &totals->shuffle,      &totals->global_load,
      &totals->global_store, &totals->shared_load, &totals->shared_store, &totals->async_copy,
      &totals->atomic,       &totals->matrix,      &totals->other};
  static_assert(std::size(classes) == static_cast<std::size_t>(Class::kCount));
  for (std::size_t i = 0; i < std::size(classes); ++i) {
    *classes[i] += counts.by_class[i];
    totals->warp_instructions += counts.by_class[i];
  }
  totals->thread_instructions += counts.lanes;
  totals->ctas += counts.ctas;
  totals->matrix_flop += counts.matrix_flop;
  totals->special_lanes += counts.special_lanes;
  totals->shared_wavefronts += counts.wavefronts;
  totals->shared_wavefronts_ideal += counts.wavefronts_ideal;
  totals->global_sectors_read += counts.sectors_read;
  totals->global_sectors_written += counts.sectors_written;
  totals->bulk_bytes += counts.bulk_bytes;
  totals->matrix_shared_bytes += counts.matrix_shared_bytes;
}

}  // namespace

std::shared_ptr<LoadedModule> LoadedModule::load(std::string_view ptx, GlobalMemory& memory) {
  return std::make_shared<Loaded>(ptx, memory);
}

void execute(const LaunchRequest& request, GlobalMemory& memory, base::ThreadPool& pool,
             const abi::SimulatorOptions& options, abi::SimulatorCounters* counters) {
  std::uint64_t ctas = 1;
  std::uint64_t clusters = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    ctas *= request.grid[d];
    clusters *= request.grid[d] / request.cluster[d];
  }
  std::uint64_t workers =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(pool.threads()), clusters);
  if (options.threads != 0) workers = std::min<std::uint64_t>(workers, options.threads);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;  // guards first_fault, fault, counters and error
  std::atomic<std::uint64_t> first_fault{~std::uint64_t{0}};
  std::optional<Fault> fault;
  std::optional<LaunchShadow> races;
  std::optional<BlockOrder> order;
  if (options.checked != 0 && request.operation != nullptr) {
    const bool orders_blocks = request.program->orders_blocks && ctas > 1;
    races.emplace(request, orders_blocks);
    if (orders_blocks) order.emplace(request);
  }
  const auto work = [&](std::int64_t, int) {
    Cluster cluster;
    prepare(cluster, request, memory);
    for (const auto& cta : cluster.ctas) {
      if (races) cta->races = &*races;
      if (order) cta->order = &*order;
    }
    while (true) {
      const std::uint64_t index = next.fetch_add(1);
      // Clusters are handed out in ascending order, so none below a fault stays unexecuted.
      if (index >= clusters || index > first_fault.load()) break;
      try {
        run_cluster(cluster, request, index, options);
      } catch (Fault& caught) {
        const Context& context = *cluster.running;
        std::copy_n(context.cta, 3, caught.block);
        caught.warp = context.warp->index;
        locate(caught, *request.program, context.pc);
        std::lock_guard lock(mutex);
        if (index < first_fault.load()) {
          first_fault = index;
          fault = caught;
        }
        break;
      }
    }
    std::lock_guard lock(mutex);
    if (counters == nullptr) return;
    for (const auto& cta : cluster.ctas) add(cta->counts, counters);
  };
  if (workers <= 1) {
    work(0, 0);
  } else {
    pool.parallel_for(static_cast<std::int64_t>(workers), work);
  }
  if (counters != nullptr) {
    ++counters->launches;
    counters->faults += fault.has_value();
  }
  if (fault) throw *fault;
}

}  // namespace annulus::sim
