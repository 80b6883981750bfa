#ifndef ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_
#define ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_

// Random attention problems with operands in host memory. They have every feature, odd sizes and
// all memory orders. The same (seed, index) gives the same problem on every machine.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/oracle/reference.h"
#include "base/random.h"

namespace annulus::test {

// A strided [B, S, H, D] tensor of 16-bit elements, or of 8-bit elements with two in each element
// of `bits`. The gaps between rows hold NaN, which shows in the answer of a kernel that reads them.
struct HostTensor {
  std::vector<std::uint16_t> bits;
  Dtype dtype = Dtype::kBfloat16;  // only e4m3 changes the layout
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
  HostState state_in;                            // used if the problem has carry_in
  std::vector<float> scale_q, scale_k, scale_v;  // used with e4m3; empty if none were given
  std::string text;                              // one line that describes the whole case

  HostInputs inputs() const;
};

enum class Order { kBshd, kBhsd, kPadded };
HostTensor make_tensor(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                       Order order, Dtype dtype = Dtype::kBfloat16);
// Fills the tensor with standard normal values multiplied by `size`, in the dtype.
void fill_normal(HostTensor& tensor, Dtype dtype, base::Random& random, float size = 1.0f);

struct CaseLimits {
  std::int64_t max_length = 260;
  std::int64_t max_heads = 4;
  bool float8 = false;  // true: e4m3 with scales; false: 16-bit dtypes
};
Pattern random_pattern(base::Random& random, std::int64_t seq_q, std::int64_t seq_k,
                       std::int64_t heads, int depth);
// Adds alibi, bias, sink_logit and an expression to the score, each with some probability.
Score random_score(base::Random& random, Score score, std::int64_t heads);
Case random_case(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits = {});
// Only the problem of random_case(), for tests that read no operands. Making operands takes nearly
// all the time of random_case().
Problem random_problem(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits = {});
// One line that describes the whole problem.
std::string text_of(const Problem& problem);
// Makes operands and text for a given problem. Keys and values before the first and after the last
// key that any row sees are NaN, because nothing reads them. e4m3 has scales from 2^-6 to 2^6.
Case make_case(const Problem& problem, std::uint64_t seed, Order order = Order::kBshd);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RANDOM_PROBLEM_H_
