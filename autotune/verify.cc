#include "autotune/verify.h"

#include <fmt/core.h>

#include "annulus/types.h"

#include "attention/oracle/reference.h"
#include "autotune/operands.h"
#include "base/thread_pool.h"
#include "device/simulator.h"
#include "device/stream.h"

namespace annulus::autotune {
namespace {

// Only the first line, because a reason is a line of a table.
std::string one_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::optional<std::string> why_costly(const jit::ResourceUsage& usage, bool may_spill) {
  if (!usage.known) return std::nullopt;  // the usage of PTX is not known before it is assembled
  const int spilled = usage.spill_store_bytes + usage.spill_load_bytes;
  const int allowed = may_spill ? attention::kMaxSpilledBytes : 0;
  // A stack frame without spills holds arrays that are indexed at run time.
  if (spilled > allowed || (spilled == 0 && usage.local_bytes > 0)) return jit::to_string(usage);
  if (!usage.notes.empty()) return "ptxas: " + usage.notes.front();
  return std::nullopt;
}

std::optional<std::string> why_wrong(const Comparison& comparison) {
  if (comparison.within_tolerance) return std::nullopt;
  return fmt::format("wrong: error of a row {:.2e}, of a head {:.2e}, of an LSE {:.2e}; {}",
                     comparison.error_row_max, comparison.error_o, comparison.error_lse,
                     comparison.first_wrong);
}

Verdict judged(const device::Context& context, const std::function<Verdict()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    const bool lost = error.code() == ErrorCode::kFault && !device::clear_simulator_fault(context);
    const bool ended = error.code() == ErrorCode::kLimit || error.code() == ErrorCode::kCancelled;
    if (lost || ended || error.code() == ErrorCode::kOutOfMemory ||
        error.code() == ErrorCode::kInternal) {
      throw;
    }
    return {.reason = one_line(error.what()), .counted = {}, .code = error.code()};
  }
}

// A part of the problem, with everything that does not depend on the candidate.
struct Verifier::Data {
  Data(const device::ContextPointer& context, const Problem& part, base::ThreadPool& pool,
       std::uint64_t seed)
      : problem(part),
        host(random_operands(part, INT64_MAX, seed)),
        on_device(context, part, host),
        oracle(attention::reference(part, host.inputs(part), pool)) {}

  // Compares the output of the device with the oracle.
  Comparison compare() const {
    const HostRows rows = on_device.rows.results();
    HostResult result;
    if (problem.carry_out) {
      result.state = &rows.state;
    } else {
      result.o = rows.o.data();
      result.o_strides = o_strides(problem);
      result.lse = rows.lse.empty() ? nullptr : rows.lse.data();
    }
    return annulus::compare(problem, oracle, result);
  }

  Problem problem;
  HostOperands host;
  DeviceOperands on_device;
  Reference oracle;
};

Verifier::Verifier(device::ContextPointer context, jit::KernelCache& kernels,
                   attention::DeviceLimits limits, const std::vector<Problem>& parts,
                   std::uint64_t seed, int threads)
    : context_(std::move(context)), kernels_(kernels), limits_(limits), parts_(parts) {
  base::ThreadPool pool(threads);
  for (const Problem& part : parts_) {
    data_.push_back(std::make_unique<Data>(context_, part, pool, seed++));
  }
}

Verifier::~Verifier() = default;

void compile_for(jit::KernelCache& kernels,
                 const std::function<std::vector<jit::KernelSpec>()>& specs) {
  try {
    for (const jit::KernelSpec& spec : specs()) kernels.get(spec);
  } catch (const Error&) {
  }
}

void Verifier::compile(const attention::KernelConfig& config) const {
  compile_for(kernels_, [&] { return kernels_of(config); });
}

Verdict Verifier::check(const attention::KernelConfig& config) const {
  return judged(*context_, [&] { return run(config); });
}

std::vector<jit::KernelSpec> Verifier::kernels_of(const attention::KernelConfig& config) const {
  std::vector<jit::KernelSpec> specs;
  for (const Problem& part : parts_) {
    for (attention::LaunchPlan& plan :
         attention::make_branch_plans(part, {config, "a candidate", {}}, limits_)) {
      specs.push_back(std::move(plan.spec));
      if (!plan.split.empty()) specs.push_back(std::move(plan.combine_spec));
    }
  }
  return specs;
}

Verdict Verifier::run(const attention::KernelConfig& config) const {
  Verdict verdict;
  device::simulator_counters(*context_, /*clear=*/true);
  for (const std::unique_ptr<Data>& part : data_) {
    const attention::Choice choice{config, "a candidate", {}};
    const attention::BranchedForward forward(
        context_, kernels_, part->problem,
        attention::make_branch_plans(part->problem, choice, limits_));
    const attention::Dims dims = {part->problem.dim_qk, part->problem.dim_v};
    const bool may_spill = attention::why_spills(config, dims, limits_.arch).has_value();
    for (const attention::Forward& branch : forward.branches()) {
      verdict.reason = why_costly(branch.lookup().kernel->usage, may_spill);
      if (verdict.reason) return verdict;
    }
    const device::Buffer workspace(context_, static_cast<std::size_t>(forward.workspace_bytes()));
    part->on_device.rows.forget_results();
    forward.run(nullptr, part->on_device.operands, reinterpret_cast<void*>(workspace.address()));
    device::synchronize(*context_, nullptr);
    verdict.reason = why_wrong(part->compare());
    if (verdict.reason) return verdict;
  }
  if (const auto counters = device::simulator_counters(*context_, true)) {
    verdict.counted = attention::counted_work(*counters);
  }
  return verdict;
}

}  // namespace annulus::autotune
