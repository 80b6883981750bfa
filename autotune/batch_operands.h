#ifndef ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_
#define ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_

// Operands and metadata for trying the kernels of a batch, placed as an engine would place them.
// The rows of Q of all requests are adjacent. K and V are in pages in random order, or, without
// pages, in rows from k_begin on. The values are random, as in operands.h.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "autotune/operands.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"
#include "tuned/batch_target.h"

namespace annulus::autotune {

// The step that is measured if the caller gives none. It follows from the bounds: its requests
// share `keys` equally. For few queries, it has the largest number of requests, with as many
// queries as `rows` allows. If the bounds also allow prompts, for which `rows` is meant, each
// request has one query. For many queries, it has the largest possible number of requests with the
// largest number of queries of one request. Requires: validate(problem) passes, and requests of the
// class are within the bounds.
std::vector<batch::StepRequest> default_step(const BatchProblem& problem,
                                             batch::RequestClass requests);

// The parameters for drawing a step.
struct StepDraw {
  std::uint64_t seed = 0;
  // At most this number of elements of each of Q, K and V is drawn. Larger tensors repeat them on
  // the device.
  std::int64_t max_elements = kTimedElements;
  // With row_limits: some rows see fewer keys than their request has. Otherwise no row does.
  bool rows_end_early = false;
};

// A step in host memory. Unless stated otherwise, numbers of keys count all keys of a request, on
// all ranks.
struct HostStep {
  BatchProblem problem;  // every bound is set
  std::vector<batch::StepRequest> requests;
  std::vector<std::int32_t> q_begin;   // [R + 1]
  std::vector<std::int32_t> k_length;  // [R]
  std::int64_t key_rows = 0;           // the rows of K and of V in memory
  std::int64_t table_width = 0;        // the row length of `pages`
  std::vector<std::int32_t> pages;     // [R, table_width]
  std::vector<std::int32_t> k_begin;   // [R], without pages
  // Arrays of BatchMetadata for R requests.
  std::vector<std::int32_t> blocks;
  std::vector<std::int32_t> row_end;
  std::vector<std::uint64_t> tree_bits;

  std::vector<std::uint8_t> q;     // [rows, H, Dqk]
  std::vector<std::uint8_t> k, v;  // [key_rows, Hkv, Dqk], [key_rows, Hkv, Dv]
  HostState state_in;              // [rows, H], with carry_in

  std::int64_t rows() const { return q_begin.back(); }
  // The row of K and V that holds a key of a request, or -1 if another rank holds it.
  std::int64_t row_of(std::size_t request, std::int64_t key) const;
  // Whether lists of blocks, row limits and ranks let a query of a request see a key. The pattern
  // is not considered.
  bool may_see(std::size_t request, std::int64_t kv_head, std::int64_t query,
               std::int64_t key) const;
};

// Requires: `requests` have the form of BatchTarget::step. Throws Error{kUnsupported} if K has more
// rows than the numbers in the metadata can address.
HostStep draw_step(const BatchProblem& problem, const std::vector<batch::StepRequest>& requests,
                   const StepDraw& draw);

// A step on a device, with memory for the kernel's output. Its addresses do not change during its
// lifetime. Throws Error{kOutOfMemory, kDevice}.
struct DeviceStep {
  DeviceStep(const device::ContextPointer& context, const HostStep& host);

  std::vector<device::Buffer> arrays;  // the arrays of the metadata
  device::Buffer q, k, v;
  DeviceRows rows;  // [rows, H]
  BatchMetadata metadata;
  BatchOperands operands;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_OPERANDS_H_
