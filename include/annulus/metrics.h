#ifndef ANNULUS_METRICS_H_
#define ANNULUS_METRICS_H_

// What a device has done since it was opened, as numbers for an engine's own monitoring:
//
//   Metrics now = device.metrics();                         // annulus/device.h
//   response.body = metrics_text(now, "device=\"cuda:0\"");   // for Prometheus and its like
//
// The numbers and their meanings are the lines of annulus/metrics.def.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/language.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

struct Metrics {
#define METRIC(name, kind, meaning) std::int64_t name = 0;
#include "annulus/metrics.def"
};

enum class MetricKind : int {
  kTotal = 1,    // only grows
  kLongest = 2,  // the longest so far
  kNow = 3,      // goes up and down
};

// A line of annulus/metrics.def with its number. Texts are literals.
struct Metric {
  std::string_view name;
  MetricKind kind = MetricKind::kTotal;
  std::string_view meaning;
  std::int64_t value = 0;
};
// In the order of annulus/metrics.def.
ANNULUS_EXPORT std::vector<Metric> list_metrics(const Metrics& metrics);

// The numbers in the OpenMetrics text format 1.0.0, without its last line "# EOF", so that a
// program can add its own: "annulus_plans_total{device=\"cuda:0\"} 3". Microseconds become seconds.
// `labels` goes between the braces as it is; empty: no braces.
ANNULUS_EXPORT std::string metrics_text(const Metrics& metrics, std::string_view labels = {});

// How long the timed runs of a plan took on the device, in microseconds, from an event before their
// first launch to one behind their last (DeviceOptions::time_every_nth_run). On a simulated device
// it is the time that the simulator took, which says nothing about a GPU. All zero before the
// first.
struct RunTimes {
  std::int64_t runs = 0;
  double total_micros = 0;
  double least_micros = 0;
  double most_micros = 0;
  double last_micros = 0;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_METRICS_H_
