#ifndef ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_
#define ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_

// Random attention problems with their operands in host memory: every feature, odd sizes, all
// memory orders. The same (seed, index) is the same problem everywhere.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/oracle/reference.h"
#include "base/random.h"

namespace annulus::test {

// A strided [B, S, H, D] tensor of 16-bit elements, or of 8-bit ones, two to each of `bits`.
// Elements between the rows hold a NaN, which shows in the answer of a kernel that reads them.
struct HostTensor {
  std::vector<std::uint16_t> bits;
  Dtype dtype = Dtype::kBfloat16;  // matters where it is e4m3
  Strides strides;
  std::int64_t batch = 0, rows = 0, heads = 0, dim = 0;

  std::int64_t offset(std::int64_t b, std::int64_t row, std::int64_t head) const {
    return b * strides.batch + row * strides.row + head * strides.head;
  }
  void set(std::int64_t index, std::uint16_t element) {
    const auto at = static_cast<std::size_t>(index);
    if (dtype == Dtype::kFloat8E4M3) {
      reinterpret_cast<std::uint8_t*>(bits.data())[at] = static_cast<std::uint8_t>(element);
    } else {
      bits[at] = element;
    }
  }
};

struct Case {
  Problem problem;
  HostTensor q, k, v;
  HostTensor o;                                  // filled with NaN
  HostState state_in;                            // with carry_in
  std::vector<float> scale_q, scale_k, scale_v;  // with e4m3; empty: none given
  std::string text;                              // one line that names everything

  HostInputs inputs() const;
};

enum class Order { kBshd, kBhsd, kPadded };
HostTensor make_tensor(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                       Order order, Dtype dtype = Dtype::kBfloat16);
// Fills the tensor with standard normal values times `size`, in the dtype.
void fill_normal(HostTensor& tensor, Dtype dtype, base::Random& random, float size = 1.0f);

struct CaseLimits {
  std::int64_t max_length = 260;
  std::int64_t max_heads = 4;
  bool float8 = false;  // e4m3 with scales, else 16-bit dtypes
};
Pattern random_pattern(base::Random& random, std::int64_t seq_q, std::int64_t seq_k,
                       std::int64_t heads, int depth);
// Adds alibi, bias, sink_logit and an expression to the score, each sometimes.
Score random_score(base::Random& random, Score score, std::int64_t heads);
Case random_case(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits = {});
// The problem of random_case() alone, for tests that read no operands: these take nearly all the
// time.
Problem random_problem(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits = {});
// One line that names everything of a problem.
std::string text_of(const Problem& problem);
// Makes operands and text for a problem that is already chosen. Keys and values are NaN in front of
// the first and behind the last key that any row sees, since nothing reads them. e4m3 has scales
// from 2^-6 to 2^6.
Case make_case(const Problem& problem, std::uint64_t seed, Order order = Order::kBshd);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_
