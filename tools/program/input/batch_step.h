#ifndef ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_
#define ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_

// A step of a batch, put on a device as an engine would: K and V in pages at random places of a
// pool that has more of them than are owned; tables with more entries than are in use; rows of Q
// and O that belong to nobody. Tests use it as well.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "program/input/request.h"

namespace annulus::program {

// How K and V lie in memory.
struct Placing {
  bool heads_first = false;  // [page, Hkv, P, D] instead of [page, P, Hkv, D]
  bool together = false;     // K and V of a page in one block
  bool listed = false;       // begins and ids instead of a table [R, width]
  bool own_tables = false;   // V has a table, and pages, of its own
  bool slabs = false;        // without pages: a slab for each request instead of k_begin
  bool in_place = false;     // the state goes out over the one that came in
  // What belongs to nobody is NaN, and entries of tables that are not in use are wrong numbers;
  // else neither is ever written.
  bool nan = false;
  std::int64_t gap = 0;    // rows of Q and O in front of the first request and behind the last
  std::uint64_t seed = 0;  // of the places of pages
};

class BatchStep {
 public:
  // Makes random tensors of the requests and copies everything to the device. The step may have
  // fewer requests than the plan.
  BatchStep(const Device& device, const BatchPlan& plan, const std::vector<Request>& requests,
            const Placing& placing);

  const BatchMetadata& metadata() const { return metadata_; }
  const BatchOperands& operands() const { return operands_; }
  void* workspace() const { return workspace_.data(); }
  const std::vector<RequestTensors>& tensors() const { return tensors_; }

  // prepare() and run() on the default stream.
  void run() const;
  // Waits, and takes the answers apart. *untouched becomes false where a row of O that belongs to
  // nobody was written.
  std::vector<RequestAnswer> answers(bool* untouched) const;

 private:
  // Device memory that lives as long as the step.
  void* keep(DeviceMemory memory);
  const std::int32_t* put(std::vector<std::int32_t> values);
  // Floats, or pairs of 16-bit numbers, that are NaN each.
  void* put_nan(std::size_t bytes);
  void place_rows();
  void place_keys();
  // A table of these pages of each request, in which all other entries are no pages. The number of
  // entries goes to *entries where the table has begins.
  PageTable put_table(const std::vector<std::vector<std::int32_t>>& names, std::int64_t* entries);
  void place_blocks();
  void place_limits();

  Device device_;
  BatchPlan plan_;
  std::vector<Request> requests_;
  Placing placing_;
  std::vector<RequestTensors> tensors_;
  std::vector<std::int64_t> q_begin_;
  std::int64_t rows_ = 0;  // of Q, those of nobody too
  BatchMetadata metadata_;
  BatchOperands operands_;
  std::vector<DeviceMemory> memory_;
  DeviceMemory workspace_;
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_
