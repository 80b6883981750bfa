#ifndef ANNULUS_TOOLS_BENCH_BATCH_STEP_H_
#define ANNULUS_TOOLS_BENCH_BATCH_STEP_H_

// Steps of batches: on a simulated device for what is counted there, on a GPU for their time.

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

// A causal problem whose bounds are what these requests have.
BatchProblem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        const std::vector<Request>& requests, std::int64_t page_rows);

// Requests of one query each: of so many keys, or of 1 to `most`, evenly or in their logarithms.
std::vector<Request> decoding(std::int64_t count, std::int64_t keys);
std::vector<Request> uniform(std::int64_t count, std::int64_t most, std::uint64_t seed);
std::vector<Request> log_uniform(std::int64_t count, double most, std::uint64_t seed);

// A simulated device in its fast mode.
Device open_fast(const char* name);

// What a step consists of.
enum class Contents {
  kZeros,   // tensors are zeros, and pages follow one another
  kRandom,  // tensors and the order of pages are random
};

// A step that is prepared, with its tensors.
class Step {
 public:
  Step(const Device& device, const BatchProblem& problem, const std::vector<Request>& requests,
       const BatchOptions& options = {}, Contents contents = Contents::kZeros);

  const BatchPlan& plan() const { return plan_; }
  double visible_bytes() const { return visible_bytes_; }  // of K and V
  void prepare() const { plan_.prepare(nullptr, metadata_, workspace_.data()); }
  void run() const { plan_.run(nullptr, operands_, workspace_.data()); }
  BatchStatus status() const { return plan_.status(workspace_.data()); }
  // What the simulator counts of a run.
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
