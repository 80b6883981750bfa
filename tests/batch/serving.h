#ifndef ANNULUS_TESTS_BATCH_SERVING_H_
#define ANNULUS_TESTS_BATCH_SERVING_H_

// A small serving engine. Requests come, grow by one to three keys per step, and go, and pages
// move. One plan and one captured graph compute every step. Pages that no request owns are NaN. A
// benchmark uses it too.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "base/random.h"
#include "device/stream.h"
#include "program/input/request.h"

namespace annulus::test {

class Serving {
 public:
  // The device may count its driver's calls (support/counted_calls.h). They are counted from the
  // capture of the graph on, except the calls with which the engine writes new data and reads
  // answers.
  Serving(const Device& device, std::uint64_t seed);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Makes the changes between two steps, and then the step, by the graph or by prepare() and run().
  void step(bool by_graph = true);
  // Waits for the step, and compares the answers of all requests with the oracle. Returns the first
  // error, or "".
  std::string first_wrong();

  std::int64_t joined() const { return joined_; }  // the number of requests that came
  std::int64_t moved() const { return moved_; }    // the number of pages that moved
  std::int64_t longest() const { return longest_; }

 private:
  struct Live {
    program::Request request;  // the request in this step
    program::RequestTensors tensors;
    std::vector<std::int32_t> pages;
  };
  void change();
  bool join();
  void leave(std::size_t index);
  void grow(Live* live, std::int64_t keys);
  void move_page(Live* live);
  void write_step();
  void free_page(std::int32_t page);
  void write(const void* to, std::int64_t offset, const void* from, std::int64_t bytes);

  Device device_;
  BatchPlan plan_;
  device::Stream stream_;
  base::Random random_;
  std::vector<Live> live_;
  std::vector<std::int32_t> free_;
  DeviceMemory k_, v_, q_, o_, lse_, q_begin_, k_length_, requests_, table_, workspace_;
  BatchMetadata metadata_;
  BatchOperands operands_;
  abi::CUgraph graph_ = nullptr;
  abi::CUgraphExec exec_ = nullptr;
  std::uint64_t seed_;
  std::int64_t joined_ = 0, moved_ = 0, longest_ = 0;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_SERVING_H_
