#include "core_pipes.h"

namespace annulus::bench {

int shared_wavefronts(const Sass& one) {
  if (one.never) return 0;
  switch (one.kind) {
    case SassKind::kShuffle:
    case SassKind::kGlobal:
    case SassKind::kPhaseWait:
    case SassKind::kPhaseArrive:
      return 1;
    case SassKind::kShared:
    case SassKind::kCopy:
      return one.wavefronts;
    default:
      return 0;
  }
}

double operand_bytes(const Sass& one) {
  return 32.0 * (one.columns + (one.rows_in_registers ? 0 : 64));
}

double other_shared_bytes(const CoreProblem& problem, const CoreAssumptions& assumptions) {
  double bytes = problem.ctas * problem.copied_bytes;
  for (const Sass& one : problem.step) {
    bytes += kSharedBytes * problem.ctas * problem.warps * shared_wavefronts(one) *
             assumptions.shared_interval;
  }
  return bytes;
}

std::array<double, kPipes> busy_pipes(const CoreProblem& problem,
                                      const CoreAssumptions& assumptions) {
  std::array<double, kPipes> cycles{};
  const auto add = [&](Pipe pipe, double value) {
    cycles[static_cast<std::size_t>(pipe)] += value;
  };
  for (const Sass& one : problem.step) {
    add(Pipe::kIssue, 1);
    switch (one.kind) {
      case SassKind::kFloat:
      case SassKind::kInteger:
        add(Pipe::kFloat, assumptions.float_interval);
        break;
      case SassKind::kLogic:
        add(Pipe::kLogic, assumptions.logic_interval);
        break;
      case SassKind::kSpecial:
        add(Pipe::kSpecial, assumptions.special_interval);
        break;
      case SassKind::kProduct:
        add(Pipe::kTensor, assumptions.product_interval);
        break;
      case SassKind::kGroupProduct:
        add(Pipe::kTensor, one.columns / 2.0);
        add(Pipe::kShared, operand_bytes(one) / kSharedBytes);
        break;
      default:
        break;
    }
  }
  for (double& of_pipe : cycles) of_pipe *= problem.ctas * problem.warps;
  add(Pipe::kShared, other_shared_bytes(problem, assumptions) / kSharedBytes);
  return cycles;
}

}  // namespace annulus::bench
