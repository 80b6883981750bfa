#ifndef ANNULUS_PROGRAM_INPUT_REQUEST_H_
#define ANNULUS_PROGRAM_INPUT_REQUEST_H_

// Requests of a batch with operands in host memory, and what an answer for one of them is held
// against.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "annulus/oracle.h"

namespace annulus::program {

struct Request {
  std::int64_t queries = 1;
  std::int64_t keys = 0;
  std::int64_t position = 0;  // of key 0
  std::uint64_t seed = 0;     // of its data: the same seed has the same queries and keys
};

// Bounds that hold these requests exactly.
BatchBounds bounds_of(const std::vector<Request>& requests);

// With BatchProblem::block_keys: the blocks that each head of K and V of the request looks at, a
// random choice of up to most_blocks of its own, ascending; most often among them the last one.
std::vector<std::vector<std::int32_t>> blocks_of(const BatchProblem& problem,
                                                 const Request& request);

// With BatchProblem::row_limits: how many keys each row of the request sees at most, and the bits
// of its tree of drafts, whose rows have parents at random. Trees are of few rows.
struct RowLimits {
  std::vector<std::int32_t> row_end;
  std::vector<std::uint64_t> tree_bits;
};
RowLimits limits_of(const Request& request);

// A request as a problem of its own. `number` is its own in the batch, which is b in a score
// expression.
Problem problem_of(const BatchProblem& problem, const Request& request, std::int64_t number = 0);

// The tensors of a request, contiguous: Q [queries, H, Dqk], K [keys, Hkv, Dqk], V [keys, Hkv, Dv].
struct RequestTensors {
  std::vector<std::uint16_t> q, k, v;
  HostState state_in;  // with carry_in
};
// Random ones. Of two requests with the same seed the one with more keys has those of the other
// first.
RequestTensors tensors_of(const BatchProblem& problem, const Request& request);

// The answer for one request, contiguous.
struct RequestAnswer {
  std::vector<std::uint16_t> o;  // [queries, H, Dv]
  std::vector<float> lse;        // [H, queries]
  HostState state;               // with carry_out
  friend bool operator==(const RequestAnswer& a, const RequestAnswer& b) {
    return a.o == b.o && a.lse == b.lse && a.state.acc == b.state.acc && a.state.m == b.state.m &&
           a.state.l == b.state.l;
  }
};

// The oracle's answer for a request, and the comparison of another with it.
Reference reference(const BatchProblem& problem, const Request& request,
                    const RequestTensors& tensors, const ReferenceOptions& options = {},
                    std::int64_t number = 0);
Comparison compare(const BatchProblem& problem, const Request& request, const Reference& expected,
                   const RequestAnswer& answer);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_REQUEST_H_
