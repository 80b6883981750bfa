#ifndef ANNULUS_AUTOTUNE_SURROGATE_H_
#define ANNULUS_AUTOTUNE_SURROGATE_H_

// Predicts the times of candidates that were not tried: the static prediction, corrected by its
// error for candidates that were tried. Similar candidates have more weight.
//
// The logarithm of a prediction's error is a Gaussian process over the configurations (Rasmussen
// and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1). It has an offset
// that all candidates share, and a part whose correlation falls with the distance between two
// configurations. The next candidate is the one with the greatest expected improvement over the
// best so far (Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box
// Functions, 1998, equation 15).

#include <cstddef>
#include <span>
#include <vector>

#include "attention/kernels/kernel_config.h"

namespace annulus::autotune {

// The distance between two configurations: 1 for twice the tile rows, for 32 more tile columns, and
// for each doubling of a number that belongs to the family. Configurations of different families
// have a large distance.
double distance(const attention::KernelConfig& a, const attention::KernelConfig& b);

class Surrogate {
 public:
  // `predicted` are the times of `configs` from the static model, in any unit. A time that is not
  // finite marks a candidate that is never expected to gain. `reference` is the candidate that the
  // others are compared with: the default.
  Surrogate(std::vector<attention::KernelConfig> configs, std::span<const double> predicted,
            std::size_t reference);

  // Records that candidate `at` took exp(log_ratio) times as long as the reference. `error` is the
  // standard error of log_ratio. At most one call for each candidate.
  void observe(std::size_t at, double log_ratio, double error);

  // The logarithm of a candidate's ratio to the reference: its expected value and standard
  // deviation.
  struct Forecast {
    double log_ratio = 0;
    double deviation = 0;
  };
  Forecast forecast(std::size_t at) const;

  // The expected improvement of a candidate over a log ratio of `best`: the mean of its gain, in
  // which a loss counts as 0.
  double expected_gain(std::size_t at, double best) const;

 private:
  double covariance(std::size_t a, std::size_t b) const;

  std::vector<attention::KernelConfig> configs_;
  std::vector<double> prior_;  // the logarithms of the predicted ratios to the reference
  // One row for each observation: the product of the Cholesky factor with the covariances of all
  // candidates. The column of an observed candidate is the factor's own column.
  std::vector<std::vector<double>> rows_;
  std::vector<double> correction_;  // to each candidate's prior
  std::vector<double> variance_;    // the variance in units of the squared amplitude
  double misfit_ = 0;               // sum of the squares of the whitened observations
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SURROGATE_H_
