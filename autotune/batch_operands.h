#ifndef ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_
#define ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_

// Operands and metadata for trying the kernels of a batch, as an engine would place them: rows of Q
// of all requests behind one another, K and V in pages in no order, or without pages in rows from
// k_begin on. Numbers are random, as in operands.h.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "autotune/operands.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"
#include "tuned/batch_target.h"

namespace annulus::autotune {

// The step that is measured where nobody gives one, from the bounds: requests that share `keys`.
// Few queries: as many requests as there can be, with as many queries as `rows` allow; or with one,
// where the bounds are for prompts as well, which `rows` is for. Many queries: as many requests as
// there can be of the most queries that one can have.
// Requires: validate(problem) passes, and requests of the class are within the bounds.
std::vector<batch::StepRequest> default_step(const BatchProblem& problem,
                                             batch::RequestClass requests);

// How a step is drawn.
struct StepDraw {
  std::uint64_t seed = 0;
  // So many elements of each of Q, K and V are drawn; tensors with more repeat them on the device.
  std::int64_t max_elements = kTimedElements;
  // With row_limits some rows end before their request's keys do; else none.
  bool rows_end_early = false;
};

// A step in host memory. All numbers of keys are those of the whole request unless said otherwise.
struct HostStep {
  BatchProblem problem;  // with every bound set
  std::vector<batch::StepRequest> requests;
  std::vector<std::int32_t> q_begin;   // [R + 1]
  std::vector<std::int32_t> k_length;  // [R]
  std::int64_t key_rows = 0;           // of K and of V in memory
  std::int64_t table_width = 0;        // with pages
  std::vector<std::int32_t> pages;     // [R, table_width]
  std::vector<std::int32_t> k_begin;   // [R], without pages
  // As BatchMetadata has them, for R requests.
  std::vector<std::int32_t> blocks;
  std::vector<std::int32_t> row_end;
  std::vector<std::uint64_t> tree_bits;

  std::vector<std::uint8_t> q;     // [rows, H, Dqk]
  std::vector<std::uint8_t> k, v;  // [key_rows, Hkv, Dqk], [key_rows, Hkv, Dv]
  HostState state_in;              // [rows, H], with carry_in

  std::int64_t rows() const { return q_begin.back(); }
  // The row of K and V that holds a key of a request, or -1 where another rank has it.
  std::int64_t row_of(std::size_t request, std::int64_t key) const;
  // Whether lists of blocks, limits of rows and ranks let a query of a request see a key, whatever
  // the pattern says.
  bool may_see(std::size_t request, std::int64_t kv_head, std::int64_t query,
               std::int64_t key) const;
};

// Requires: `requests` are as BatchTarget::step has them. Throws Error{kUnsupported} for more rows
// of K than metadata have numbers for.
HostStep draw_step(const BatchProblem& problem, const std::vector<batch::StepRequest>& requests,
                   const StepDraw& draw);

// A step on a device, with room for what a kernel writes. Its addresses stay the same as long as it
// lives. Throws Error{kOutOfMemory, kDevice}.
struct DeviceStep {
  DeviceStep(const device::ContextPointer& context, const HostStep& host);

  std::vector<device::Buffer> arrays;  // of the metadata
  device::Buffer q, k, v;
  DeviceRows rows;  // [rows, H]
  BatchMetadata metadata;
  BatchOperands operands;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_
