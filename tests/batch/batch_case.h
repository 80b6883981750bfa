#ifndef ANNULUS_TESTS_BATCH_BATCH_CASE_H_
#define ANNULUS_TESTS_BATCH_BATCH_CASE_H_

// A batch of requests with operands in host memory, put on a device as an engine would: K and V in
// pages at random places of a pool, of which only the rows that belong to a request are ever
// written; tables whose unused entries are garbage; rows of Q and O that belong to nobody.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/oracle.h"

namespace annulus::test {

struct Request {
  std::int64_t queries = 1;
  std::int64_t keys = 0;
  std::int64_t position = 0;  // of key 0
  std::uint64_t seed = 0;     // of its data: the same seed has the same queries and keys
};

// How K and V lie in memory.
struct Placing {
  bool heads_first = false;  // [page, Hkv, P, D] instead of [page, P, Hkv, D]
  bool together = false;     // K and V of a page in one block
  bool listed = false;       // begins and ids instead of a table [R, width]
  bool own_tables = false;   // V has a table, and pages, of its own
  bool slabs = false;        // without pages: a slab for each request instead of k_begin
  bool in_place = false;     // the state goes out over the one that came in
  std::int64_t gap = 0;      // rows of Q and O in front of the first request and behind the last
  std::uint64_t seed = 0;    // of the places of pages
};

// The answer for one request, contiguous.
struct Answer {
  std::vector<std::uint16_t> o;  // [queries, H, Dv]
  std::vector<float> lse;        // [H, queries]
  HostState state;               // with carry_out
  friend bool operator==(const Answer& a, const Answer& b) {
    return a.o == b.o && a.lse == b.lse && a.state.acc == b.state.acc && a.state.m == b.state.m &&
           a.state.l == b.state.l;
  }
};

// The tensors of a request, contiguous: Q [queries, H, Dqk], K [keys, Hkv, Dqk], V [keys, Hkv, Dv].
struct Tensors {
  std::vector<std::uint16_t> q, k, v;
  HostState state_in;  // with carry_in
};
Tensors tensors_of(const BatchProblem& problem, const Request& request);

// A request as a problem of its own.
Problem problem_of(const BatchProblem& problem, const Request& request);

// A step on a device.
class BatchCase {
 public:
  // Copies everything to the device. The step may have fewer requests than the plan.
  BatchCase(const Device& device, const BatchPlan& plan, const std::vector<Request>& requests,
            const Placing& placing);

  const BatchMetadata& metadata() const { return metadata_; }
  const BatchOperands& operands() const { return operands_; }
  void* workspace() const { return workspace_.data(); }
  // prepare() and run() on the default stream.
  void run() const;
  // Waits, and takes the answers apart. Where a row of nobody was written a check fails, or
  // *untouched becomes false.
  std::vector<Answer> answers(bool* untouched = nullptr) const;

 private:
  DeviceMemory put(const std::vector<std::int32_t>& values);
  void place_keys(const Placing& placing);

  Device device_;
  BatchPlan plan_;
  std::vector<Request> requests_;
  std::vector<std::int64_t> q_begin_;
  std::int64_t rows_ = 0;
  BatchMetadata metadata_;
  BatchOperands operands_;
  std::vector<DeviceMemory> memory_;  // all arrays
  DeviceMemory workspace_;
};

// Bounds that hold these requests exactly.
BatchBounds bounds_of(const std::vector<Request>& requests);

// Holds each request's answer against the oracle: what is wrong first, or nothing.
std::string first_wrong(const BatchProblem& problem, const std::vector<Request>& requests,
                        const std::vector<Answer>& answers);
// The same with doctest's checks. `what` is said where one
// fails.
void check_answers(const BatchProblem& problem, const std::vector<Request>& requests,
                   const std::vector<Answer>& answers, const std::string& what);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_BATCH_CASE_H_
