#ifndef ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_
#define ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_

// A step of a batch on a device, placed as an engine would place it. The pages of K and V are at
// random places of a pool with more pages than the requests own. The tables have more entries than
// are in use, and some rows of Q and O belong to no request. Tests use this class too.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "program/input/request.h"

namespace annulus::program {

// The layout of K and V in memory.
struct Placing {
  bool heads_first = false;  // [page, Hkv, P, D] instead of [page, P, Hkv, D]
  bool together = false;     // K and V of a page in one block
  bool listed = false;       // page tables have `begin` and `ids` instead of the shape [R, width]
  bool own_tables = false;   // V has separate pages and a separate table
  bool slabs = false;        // without pages: a slab for each request instead of k_begin
  bool in_place = false;     // the outgoing state overwrites the incoming state
  // Elements that no request owns are NaN, and unused entries of tables are wrong numbers. If
  // false, these elements and entries are never written.
  bool nan = false;
  std::int64_t gap = 0;    // unowned rows of Q and O before the first request and after the last
  std::uint64_t seed = 0;  // determines the places of pages
};

class BatchStep {
 public:
  // Makes random tensors for the requests and copies everything to the device. The step may have
  // fewer requests than the plan allows.
  BatchStep(const Device& device, const BatchPlan& plan, const std::vector<Request>& requests,
            const Placing& placing);

  const BatchMetadata& metadata() const { return metadata_; }
  const BatchOperands& operands() const { return operands_; }
  void* workspace() const { return workspace_.data(); }
  const std::vector<RequestTensors>& tensors() const { return tensors_; }

  // Calls prepare() and run() of the plan on the default stream.
  void run() const;
  // Waits for the run and returns the answer of each request. Sets *untouched to false if the run
  // wrote a row of O that no request owns.
  std::vector<RequestAnswer> answers(bool* untouched) const;

 private:
  // Keeps device memory alive as long as the step.
  void* keep(DeviceMemory memory);
  const std::int32_t* put(std::vector<std::int32_t> values);
  // Allocates memory that is filled with NaN, both as floats and as pairs of 16-bit numbers.
  void* put_nan(std::size_t bytes);
  void place_rows();
  void place_keys();
  // Makes a table of the given pages of each request. All other entries are not pages. If the table
  // has `begin`, *entries becomes its number of entries.
  PageTable put_table(const std::vector<std::vector<std::int32_t>>& names, std::int64_t* entries);
  void place_blocks();
  void place_limits();

  Device device_;
  BatchPlan plan_;
  std::vector<Request> requests_;
  Placing placing_;
  std::vector<RequestTensors> tensors_;
  std::vector<std::int64_t> q_begin_;
  std::int64_t rows_ = 0;  // the rows of Q, including rows that no request owns
  BatchMetadata metadata_;
  BatchOperands operands_;
  std::vector<DeviceMemory> memory_;
  DeviceMemory workspace_;
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_BATCH_STEP_H_
