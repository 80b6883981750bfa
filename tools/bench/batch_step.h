#ifndef ANNULUS_TOOLS_BENCH_BATCH_STEP_H_
#define ANNULUS_TOOLS_BENCH_BATCH_STEP_H_

// Steps of batches. They run on a simulated device to count events, and on a GPU to take times.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "annulus/batch.h"

namespace annulus::bench {

struct Request {
  std::int64_t queries;
  std::int64_t keys;
};

// A causal problem with the exact bounds of these requests.
BatchProblem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        const std::vector<Request>& requests, std::int64_t page_rows);

// Requests of one query each. decoding() gives each request `keys` keys. The other two draw the
// number of keys from 1 to `most`, uniformly or uniformly in its logarithm.
std::vector<Request> decoding(std::int64_t count, std::int64_t keys);
std::vector<Request> uniform(std::int64_t count, std::int64_t most, std::uint64_t seed);
std::vector<Request> log_uniform(std::int64_t count, double most, std::uint64_t seed);

// Opens a simulated device in its fast mode.
Device open_fast(const char* name);

// The contents of a step's tensors and pages.
enum class Contents {
  kZeros,   // tensors are zero, and pages are consecutive
  kRandom,  // tensors and the order of pages are random
};

// A step after prepare(), with its tensors.
class Step {
 public:
  Step(const Device& device, const BatchProblem& problem, const std::vector<Request>& requests,
       const BatchOptions& options = {}, Contents contents = Contents::kZeros);

  const BatchPlan& plan() const { return plan_; }
  double visible_bytes() const { return visible_bytes_; }  // the bytes of K and V that queries see
  void prepare() const { plan_.prepare(nullptr, metadata_, workspace_.data()); }
  void run() const { plan_.run(nullptr, operands_, workspace_.data()); }
  BatchStatus status() const { return plan_.status(workspace_.data()); }
  // The counters of the simulator for one run.
  std::map<std::string, double> counters() const;

 private:
  const std::int32_t* put(const std::vector<std::int32_t>& values);
  void* tensor(std::int64_t elements);

  Device device_;
  Contents contents_;
  BatchPlan plan_;
  BatchMetadata metadata_;
  BatchOperands operands_;
  std::vector<DeviceMemory> memory_;
  DeviceMemory workspace_;
  double visible_bytes_ = 0;
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_BATCH_STEP_H_
