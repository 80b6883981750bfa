// Collects the metrics of a device from the parts that count them.
#include "annulus/observe.h"

#include <fmt/core.h>

#include "annulus/device.h"
#include "api/impl.h"

namespace annulus::inline v0 {
namespace {

std::string seconds(std::int64_t micros) {
  return fmt::format("{}.{:06}", micros / 1'000'000, micros % 1'000'000);
}

}  // namespace

Metrics Device::metrics() const {
  const Impl& device = api::inside(*this);
  if (device.timer) device.timer->collect();
  Metrics now;
  const base::Tally& tally = device.context->tally();
#define METRIC(name, kind, meaning)
#define COUNTED_METRIC(name, kind, meaning) now.name = tally.total(base::Count::name);
#include "annulus/metrics.def"
  const base::CacheCounters kernels = device.kernels->counters();
  now.kernels = kernels.entries;
  now.kernel_hits = kernels.hits;
  now.kernel_waits = kernels.waits;
  const ListCounters lists = list_counters();
  now.host_list_hits = lists.host.hits;
  now.host_list_misses = lists.host.misses;
  now.host_list_evictions = lists.host.evictions;
  now.host_list_bytes = lists.host.bytes;
  now.device_list_hits = lists.device.hits;
  now.device_list_misses = lists.device.misses;
  now.device_list_evictions = lists.device.evictions;
  now.device_list_bytes = lists.device.bytes;
  const MemoryStatistics memory = memory_statistics();
  now.memory_held_bytes = memory.held_bytes;
  now.memory_used_bytes = memory.used_bytes;
  now.memory_waiting_bytes = memory.waiting_bytes;
  now.memory_peak_held_bytes = memory.peak_held_bytes;
  now.memory_peak_used_bytes = memory.peak_used_bytes;
  now.memory_largest_free_bytes = memory.largest_free_bytes;
  now.memory_lists_bytes = memory.lists_bytes;
  now.memory_tables_bytes = memory.tables_bytes;
  now.memory_selection_bytes = memory.selection_bytes;
  now.memory_caller_bytes = memory.caller_bytes;
  now.memory_scratch_bytes = memory.scratch_bytes;
  return now;
}

std::vector<Metric> list_metrics(const Metrics& metrics) {
  return {
#define METRIC(name, kind, meaning) {#name, MetricKind::kind, meaning, metrics.name},
#include "annulus/metrics.def"
  };
}

std::string metrics_text(const Metrics& metrics, std::string_view labels) {
  const std::string braces = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  constexpr std::string_view kMicros = "_micros";
  std::string text;
  for (const Metric& metric : list_metrics(metrics)) {
    const bool is_time = metric.name.ends_with(kMicros);
    const bool is_total = metric.kind == MetricKind::kTotal;
    std::string_view stem = metric.name;
    if (is_time) stem.remove_suffix(kMicros.size());
    const std::string name = fmt::format("annulus_{}{}", stem, is_time ? "_seconds" : "");
    text += fmt::format("# TYPE {} {}\n", name, is_total ? "counter" : "gauge");
    if (is_time) {
      text += fmt::format("# UNIT {} seconds\n", name);
    } else if (name.ends_with("_bytes")) {
      text += fmt::format("# UNIT {} bytes\n", name);
    }
    text += fmt::format("# HELP {} {}\n", name, metric.meaning);
    text += fmt::format("{}{}{} {}\n", name, is_total ? "_total" : "", braces,
                        is_time ? seconds(metric.value) : fmt::format("{}", metric.value));
  }
  return text;
}

RunTimes Plan::times() const {
  impl_->process.check("plan");
  if (!impl_->timer) return {};
  const device::Times times = impl_->timer->times(*impl_->timed);
  return {times.runs, times.total, times.least, times.most, times.last};
}

}  // namespace annulus::inline v0
