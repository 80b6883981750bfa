#ifndef ANNULUS_TESTS_SELECTION_CHOOSING_H_
#define ANNULUS_TESTS_SELECTION_CHOOSING_H_

// Runs a case with blocks chosen on the device, and the results of both oracles.

#include <cstdint>
#include <vector>

#include "attention/on_device.h"
#include "selection/reference.h"

namespace annulus::test {

struct ChosenAnswer {
  DeviceAnswer answer;
  std::vector<std::int32_t> chosen;  // [B, H, rows, columns], followed by -1
};

// `chosen` has room for all blocks of a row. `given` is as in SelectionBuffers, or empty.
inline ChosenAnswer run_chosen(const Device& on, const Case& c, const Selection& selection,
                               const std::vector<std::int32_t>& given = {},
                               const PlanOptions& options = {}) {
  const Problem& problem = c.problem;
  DeviceCase memory(on, c);
  const Plan plan = on.plan(problem, selection, options);
  const DeviceMemory workspace = on.allocate(plan.workspace_bytes());
  const std::int64_t columns = std::max<std::int64_t>(1, selection.columns(problem.seq_k));
  ChosenAnswer result;
  result.chosen.assign(static_cast<std::size_t>(problem.batch * problem.heads *
                                                selection.rows(problem.seq_q) * columns),
                       -7);
  const DeviceMemory chosen = on.allocate(result.chosen.size() * 4);
  const DeviceMemory from = on.allocate(given.size() * 4);
  if (!given.empty()) on.copy_to_device(from.data(), given.data(), from.bytes());
  SelectionBuffers buffers;
  buffers.chosen = static_cast<std::int32_t*>(chosen.data());
  buffers.max_chosen = columns;
  buffers.given = static_cast<const std::int32_t*>(from.data());
  plan.run(nullptr, memory.operands(), workspace.data(), buffers);
  result.answer = memory.answer();
  on.copy_to_host(result.chosen.data(), chosen.data(), chosen.bytes());
  return result;
}

// The oracle's blocks in the form that a run writes.
inline std::vector<std::int32_t> indices_of(const selection::HostBlocks& blocks) {
  std::vector<std::int32_t> indices;
  for (std::int64_t line = 0; line < blocks.batch * blocks.heads * blocks.rows; ++line) {
    const std::size_t begin = static_cast<std::size_t>(line * blocks.columns);
    const std::size_t end = indices.size() + static_cast<std::size_t>(blocks.columns);
    for (std::int64_t column = 0; column < blocks.columns; ++column) {
      if (blocks.chosen[begin + static_cast<std::size_t>(column)]) {
        indices.push_back(static_cast<std::int32_t>(column));
      }
    }
    indices.resize(end, -1);
  }
  return indices;
}

// Compares a batch of an answer with float64 over the chosen blocks. Requires default positions and
// no carried state.
inline void check_batch(const Case& c, const Selection& selection,
                        const selection::HostBlocks& blocks, const DeviceAnswer& answer,
                        std::int64_t b) {
  Problem problem = c.problem;
  problem.batch = 1;
  problem.pattern =
      problem.pattern & annulus::blocks(selection::layout_of(problem, selection, blocks, b));
  HostInputs inputs = c.inputs();
  inputs.q = c.q.bits.data() + b * inputs.q_strides.batch;
  inputs.k = c.k.bits.data() + b * inputs.k_strides.batch;
  inputs.v = c.v.bits.data() + b * inputs.v_strides.batch;
  HostResult result = answer.result();
  result.o += b * result.o_strides.batch;
  if (result.lse != nullptr) result.lse += b * problem.heads * problem.seq_q;
  const Reference oracle = attention::reference(problem, inputs, pool());
  const Comparison comparison = annulus::compare(problem, oracle, result);
  if (!comparison.within_tolerance) {
    FAIL_CHECK(c.text << "\n  batch " << b << " row " << comparison.error_row_max << " head "
                      << comparison.error_o << " LSE " << comparison.error_lse << " in "
                      << comparison.wrong_rows << " rows: " << comparison.first_wrong);
  }
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SELECTION_CHOOSING_H_
