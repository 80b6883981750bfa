#include "autotune/surrogate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/kernels/family.h"

namespace annulus::autotune {
namespace {

using attention::ConfigField;
using attention::KernelConfig;

// What is believed before anything is measured: the model is off by 5 % between configurations of
// different kinds, as certain as if two measurements had said so. What is measured soon outweighs
// it.
constexpr double kAmplitude = 0.05;
constexpr double kBelief = 2;
// The offset that all candidates share, beside the reference, may be 1 %: those that are tried
// first are those that the model thinks too well of, and what they share says little of the others.
constexpr double kOffset = (0.01 / kAmplitude) * (0.01 / kAmplitude);
// The distance at which the correlation of two errors has fallen to 1/e.
constexpr double kLength = 3;
constexpr double kBetweenFamilies = 6;
// The share of an error's variance that a configuration has for itself, whatever those that are
// alike have.
constexpr double kOwn = 0.7;
// What two measurements of one configuration differ by at least.
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

// Appends one row to the factorisation, and adds what it says to every candidate's mean and
// variance.
void Surrogate::observe(std::size_t at, double log_ratio, double error) {
  if (!std::isfinite(prior_[at]) || !std::isfinite(log_ratio)) return;
  const double noise = kNugget + error * error / (kAmplitude * kAmplitude);
  const double pivot = std::sqrt(variance_[at] + noise);
  // The share of the error that the observations before did not explain.
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
  // The amplitude after the observations, with an inverse gamma prior: they tell how good the model
  // is here.
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
