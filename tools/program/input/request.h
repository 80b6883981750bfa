#ifndef ANNULUS_PROGRAM_INPUT_REQUEST_H_
#define ANNULUS_PROGRAM_INPUT_REQUEST_H_

// Requests of a batch with operands in host memory, and the reference answer to which the answer
// for a request is compared.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "annulus/oracle.h"

namespace annulus::program {

struct Request {
  std::int64_t queries = 1;
  std::int64_t keys = 0;
  std::int64_t position = 0;  // position of key 0
  // Seed of the data; requests with the same seed have the same queries and keys.
  std::uint64_t seed = 0;
};

// The exact bounds of these requests.
BatchBounds bounds_of(const std::vector<Request>& requests);

// With BatchProblem::block_keys: the blocks of keys that each head of K and V of the request sees.
// They are a random choice of at most max_blocks of the request's blocks, in ascending order, and
// mostly contain the last block.
std::vector<std::vector<std::int32_t>> blocks_of(const BatchProblem& problem,
                                                 const Request& request);

// With BatchProblem::row_limits: the number of keys that each row of the request may see, and the
// bits of its tree of drafts. The rows of a tree have random parents. Only requests with few rows
// have a tree.
struct RowLimits {
  std::vector<std::int32_t> row_end;
  std::vector<std::uint64_t> tree_bits;
};
RowLimits limits_of(const Request& request);

// The request as a separate problem. `number` is the request's index in the batch, which is b in a
// score expression.
Problem problem_of(const BatchProblem& problem, const Request& request, std::int64_t number = 0);

// The tensors of a request, contiguous: Q [queries, H, Dqk], K [keys, Hkv, Dqk], V [keys, Hkv, Dv].
struct RequestTensors {
  std::vector<std::uint16_t> q, k, v;
  HostState state_in;  // used if the problem has carry_in
};
// Random tensors. If two requests have the same seed, the keys of the shorter request are the first
// keys of the longer one.
RequestTensors tensors_of(const BatchProblem& problem, const Request& request);

// The answer for one request, contiguous.
struct RequestAnswer {
  std::vector<std::uint16_t> o;  // [queries, H, Dv]
  std::vector<float> lse;        // [H, queries]
  HostState state;               // used if the problem has carry_out
  friend bool operator==(const RequestAnswer& a, const RequestAnswer& b) {
    return a.o == b.o && a.lse == b.lse && a.state.acc == b.state.acc && a.state.m == b.state.m &&
           a.state.l == b.state.l;
  }
};

// The oracle's answer for a request, and the comparison of a kernel's answer with it.
Reference reference(const BatchProblem& problem, const Request& request,
                    const RequestTensors& tensors, const ReferenceOptions& options = {},
                    std::int64_t number = 0);
Comparison compare(const BatchProblem& problem, const Request& request, const Reference& expected,
                   const RequestAnswer& answer);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_REQUEST_H_
