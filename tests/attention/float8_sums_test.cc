// Errors of sums of products of e4m3, which its tolerance supposes to be small, by the rule of an
// H200 (tools/simulator/docs/simulator.md, "What the manual leaves open"): the 32 products of an
// instruction and the accumulator are cut to 13 bits below the largest exponent, and the sum to 14
// bits.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/oracle/reference.h"
#include "base/half.h"
#include "base/random.h"

namespace annulus::attention {
namespace {

constexpr int kTerms = 32;

// The exponent of a number of e4m3 as a factor.
int exponent(double value) { return std::max(std::ilogb(value), -6); }

// sum += a b over kTerms of both.
double add_cut(double sum, const double* a, const double* b) {
  int largest = sum == 0 ? -100 : std::ilogb(sum);
  for (int i = 0; i < kTerms; ++i) {
    if (a[i] * b[i] != 0) largest = std::max(largest, exponent(a[i]) + exponent(b[i]));
  }
  const double unit = std::ldexp(1.0, largest - 13);
  double cut = std::trunc(sum / unit);
  for (int i = 0; i < kTerms; ++i) cut += std::trunc(a[i] * b[i] / unit);
  if (cut == 0) return 0;
  const double last = std::ldexp(1.0, std::ilogb(cut) - 13);  // the last of 14 bits
  return std::trunc(cut / last) * last * unit;
}

double rounded(double value) {
  return static_cast<double>(base::e4m3_to_float(base::float_to_e4m3(static_cast<float>(value))));
}

// Relative error of sums of `keys` powers times elements of V with mean `mean` and deviation 1, if
// every `together` keys the sum is promoted to fp32. Scores are normal.
double error_of_values(int keys, int together, double mean) {
  base::Random random(5);
  double error = 0;
  double norm = 0;
  for (int column = 0; column < 24; ++column) {
    std::vector<double> p, v;
    for (int key = 0; key < keys; ++key) {
      p.push_back(rounded(256 * std::exp2(1.4 * static_cast<double>(random.normal()) - 5)));
      v.push_back(rounded(static_cast<double>(random.normal()) + mean));
    }
    double exact = 0;
    double whole = 0;
    double part = 0;
    for (int key = 0; key < keys; key += kTerms) {
      for (int i = key; i < key + kTerms; ++i) {
        exact += p[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
      }
      part = add_cut(part, p.data() + key, v.data() + key);
      if ((key + kTerms) % together == 0) {
        whole += part;
        part = 0;
      }
    }
    error += (whole + part - exact) * (whole + part - exact);
    norm += exact * exact;
  }
  return std::sqrt(error / norm);
}

// The table of docs/kernels.md, a little raised: errors of O if sums of `together` keys are
// promoted, for columns of V with a mean of 1 and of 0.
struct Row {
  int together;
  double with_mean;
  double without_mean;
};
constexpr Row kTable[] = {{128, 3.2e-4, 1.5e-4},  {256, 1.2e-3, 2.6e-4},  {512, 3.7e-3, 4e-4},
                          {1024, 9.8e-3, 6.5e-4}, {2048, 2.4e-2, 1.1e-3}, {4096, 5.2e-2, 1.5e-3}};

TEST_CASE("sums of 512 keys that are cut off stay far within tolerance of e4m3") {
  for (const auto& [together, with_mean, without_mean] : kTable) {
    CAPTURE(together);
    CHECK(error_of_values(4096, together, 1.0) < with_mean);
    CHECK(error_of_values(4096, together, 0.0) < without_mean);
  }
  const double head = tolerance(Dtype::kFloat8E4M3).frobenius;
  CHECK(kTable[2].with_mean < head / 10);
  CHECK(error_of_values(16384, 512, 1.0) < kTable[2].with_mean);
  // If products with V come in parts, a sum has the keys of one step.
  for (const int step : {64, 96}) {
    CAPTURE(step);
    CHECK(error_of_values(step * 128, step, 1.0) < kTable[0].with_mean);
  }
  // The errors for which sums are promoted: V with a mean, and all keys in one sum.
  CHECK(error_of_values(4096, 4096, 1.0) > head / 2);
  CHECK(error_of_values(16384, 16384, 1.0) > 2 * head);
}

TEST_CASE("scores that are cut off move an LSE less than the tolerance of e4m3 allows") {
  for (const int dim : {64, 128, 256}) {
    for (const double size : {1.0, 4.0}) {  // scores up to about 4 and 16
      CAPTURE(dim);
      CAPTURE(size);
      base::Random random(6);
      double worst = 0;
      for (int row = 0; row < 4; ++row) {
        std::vector<double> q;
        for (int d = 0; d < dim; ++d) q.push_back(rounded(static_cast<double>(random.normal())));
        double exact = 0;
        double cut = 0;
        for (int key = 0; key < 512; ++key) {
          std::vector<double> k;
          for (int d = 0; d < dim; ++d) k.push_back(rounded(static_cast<double>(random.normal())));
          double product = 0;
          double score = 0;
          for (int d = 0; d < dim; d += kTerms) {
            score = add_cut(score, q.data() + d, k.data() + d);
            for (int i = d; i < d + kTerms; ++i) {
              product += q[static_cast<std::size_t>(i)] * k[static_cast<std::size_t>(i)];
            }
          }
          exact += std::exp(size * product / std::sqrt(static_cast<double>(dim)));
          cut += std::exp(size * score / std::sqrt(static_cast<double>(dim)));
        }
        const double difference = std::fabs(std::log(cut) - std::log(exact));
        worst = std::max(worst, difference / std::max(1.0, std::fabs(std::log(exact))));
      }
      CHECK(worst < tolerance(Dtype::kFloat8E4M3).lse / 2);
    }
  }
}

}  // namespace
}  // namespace annulus::attention
