#include "autotune/surrogate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/kernels/family.h"

namespace annulus::autotune {
namespace {

using attention::ConfigField;
using attention::KernelConfig;

// The prior belief: the model's error between configurations of different kinds is 5 %, with the
// weight of two measurements. A few measurements outweigh it.
constexpr double kAmplitude = 0.05;
constexpr double kBelief = 2;
// The offset that all candidates share, except the reference, has a deviation of 1 %. It is small
// because the candidates that are tried first are those that the model overrates, and their common
// error says little about the others.
constexpr double kOffset = (0.01 / kAmplitude) * (0.01 / kAmplitude);
// The distance at which the correlation of two errors has fallen to 1/e.
constexpr double kLength = 3;
constexpr double kBetweenFamilies = 6;
// The share of an error's variance that is independent for each configuration, even for similar
// ones.
constexpr double kOwn = 0.7;
// The least variance of a measurement, in units of the squared amplitude.
constexpr double kNugget = 1e-4;

double steps(const ConfigField& field, int a, int b) {
  if (field.form == ConfigField::Form::kFlag) return a == b ? 0 : 1;
  return std::abs(std::log2(std::max(a, 1)) - std::log2(std::max(b, 1)));
}

}  // namespace

double distance(const KernelConfig& a, const KernelConfig& b) {
  double sum = std::abs(std::log2(a.tile_rows) - std::log2(b.tile_rows)) +
               std::abs(a.tile_columns - b.tile_columns) / 32.0;
  if (a.family != b.family) return sum + kBetweenFamilies;
  const auto& fields = a.family->fields;
  for (std::size_t i = 0; i < fields.size(); ++i) sum += steps(fields[i], a.own[i], b.own[i]);
  return sum;
}

Surrogate::Surrogate(std::vector<KernelConfig> configs, std::span<const double> predicted,
                     std::size_t reference)
    : configs_(std::move(configs)),
      correction_(configs_.size(), 0.0),
      variance_(configs_.size(), 1 + kOffset) {
  double unit = predicted[reference];
  if (!std::isfinite(unit) && !std::ranges::empty(predicted))
    unit = *std::ranges::min_element(predicted);
  for (const double each : predicted) prior_.push_back(std::log(each / unit));
  observe(reference, 0, 0);
}

double Surrogate::covariance(std::size_t a, std::size_t b) const {
  const double alike = (1 - kOwn) * std::exp(-distance(configs_[a], configs_[b]) / kLength);
  return kOffset + alike + (a == b ? kOwn : 0);
}

// Appends one row to the factorisation, and updates every candidate's mean and variance.
void Surrogate::observe(std::size_t at, double log_ratio, double error) {
  if (!std::isfinite(prior_[at]) || !std::isfinite(log_ratio)) return;
  const double noise = kNugget + error * error / (kAmplitude * kAmplitude);
  const double pivot = std::sqrt(variance_[at] + noise);
  // The part of the error that the earlier observations did not explain.
  const double whitened = (log_ratio - prior_[at] - correction_[at]) / pivot;
  std::vector<double> row(configs_.size());
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    double value = covariance(at, i);
    for (const std::vector<double>& before : rows_) value -= before[at] * before[i];
    row[i] = value / pivot;
    correction_[i] += row[i] * whitened;
    variance_[i] -= row[i] * row[i];
  }
  misfit_ += whitened * whitened;
  rows_.push_back(std::move(row));
}

Surrogate::Forecast Surrogate::forecast(std::size_t at) const {
  // The amplitude after the observations, with an inverse gamma prior. The observations show how
  // good the model is here.
  const double square =
      (kBelief * kAmplitude * kAmplitude + misfit_) / (kBelief + static_cast<double>(rows_.size()));
  return {prior_[at] + correction_[at], std::sqrt(std::max(variance_[at], 0.0) * square)};
}

double Surrogate::expected_gain(std::size_t at, double best) const {
  const Forecast known = forecast(at);
  if (!std::isfinite(known.log_ratio)) return 0;
  const double gain = best - known.log_ratio;
  if (known.deviation <= 0) return std::max(gain, 0.0);
  const double z = gain / known.deviation;
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return gain * below + known.deviation * density;
}

}  // namespace annulus::autotune
