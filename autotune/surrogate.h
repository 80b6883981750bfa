#ifndef ANNULUS_AUTOTUNE_SURROGATE_H_
#define ANNULUS_AUTOTUNE_SURROGATE_H_

// What candidates that were not tried are expected to take: the static prediction, corrected by how
// far it was off for candidates that were tried, most of all for those that are much alike.
//
// The error of a prediction, as a logarithm, is a Gaussian process over the configurations
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1): an offset
// that all candidates share, and a part whose correlation falls with the distance between two
// configurations. The next candidate is the one with the greatest expected improvement over the
// best so far (Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box
// Functions, 1998, equation 15).

#include <cstddef>
#include <span>
#include <vector>

#include "attention/kernels/kernel_config.h"

namespace annulus::autotune {

// How far apart two configurations are: 1 for a tile of twice the rows, for 32 more columns, and
// for each of the family's own numbers that is doubled. Configurations of two families are far
// apart.
double distance(const attention::KernelConfig& a, const attention::KernelConfig& b);

class Surrogate {
 public:
  // `predicted` are the times of `configs` that the static model predicts, in any unit; one that is
  // not finite stands for a candidate that is never expected to gain. `reference` is the candidate
  // that the others are compared with: the default.
  Surrogate(std::vector<attention::KernelConfig> configs, std::span<const double> predicted,
            std::size_t reference);

  // Candidate `at` took exp(log_ratio) times as long as the reference, which is known with a
  // standard error of `error`. At most once for each candidate.
  void observe(std::size_t at, double log_ratio, double error);

  // The logarithm of a candidate's ratio to the reference: what is expected, and its standard
  // deviation.
  struct Forecast {
    double log_ratio = 0;
    double deviation = 0;
  };
  Forecast forecast(std::size_t at) const;

  // By how much a candidate is expected to improve on a log ratio of `best`: the mean of what it
  // gains, where no gain counts as 0.
  double expected_gain(std::size_t at, double best) const;

 private:
  double covariance(std::size_t a, std::size_t b) const;

  std::vector<attention::KernelConfig> configs_;
  std::vector<double> prior_;  // predicted log ratios
  // Rows of the Cholesky factor's product with the covariances of all candidates, one for each
  // observation: the column of an observed candidate is that of the factor itself.
  std::vector<std::vector<double>> rows_;
  std::vector<double> correction_;  // of each candidate's prior
  std::vector<double> variance_;    // in units of the amplitude's square
  double misfit_ = 0;               // sum of the squares of the whitened observations
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SURROGATE_H_
