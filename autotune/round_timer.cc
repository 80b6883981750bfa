#include "autotune/round_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/work.h"

namespace annulus::autotune {

using attention::KernelConfig;

RoundTimer::RoundTimer(const device::ContextPointer& context, const MeasureOptions& options)
    : context_(context),
      options_(options),
      scratch_(context, static_cast<std::size_t>(2 * context->info().l2_bytes)),
      start_(context, device::Event::Timing::kOn),
      end_(context, device::Event::Timing::kOn) {}

double RoundTimer::time_micros(const Run& run, int repeats, tuned::CacheState l2) {
  // The fill is twice as large as L2 and evicts the data of the previous configuration. It
  // also keeps the device busy while the launches are queued, so that the measured time is the
  // device's and not the host's.
  device::fill_bytes_async(*context_, scratch_.address(), 0, scratch_.bytes(), nullptr);
  if (l2 == tuned::CacheState::kWarm) run();
  start_.record(nullptr);
  for (int i = 0; i < repeats; ++i) run();
  end_.record(nullptr);
  end_.synchronize();
  return device::elapsed_millis(*context_, start_, end_) * 1e3 / repeats;
}

void RoundTimer::rest(int attempt) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100 << attempt));
}

// The runs of these configurations, in their order. Only these are kept for the next call.
std::vector<const RoundTimer::Ready*> RoundTimer::ready(std::span<const KernelConfig> configs,
                                                        const MakeRun& make) {
  std::map<std::string, Ready> before = std::exchange(ready_, {});
  // Unneeded runs are destroyed before new ones are made, because the lists of long problems are
  // large.
  std::erase_if(before, [&](const auto& each) {
    return std::ranges::none_of(
        configs, [&](const KernelConfig& config) { return to_string(config) == each.first; });
  });
  std::vector<const Ready*> all;
  for (const KernelConfig& config : configs) {
    const std::string name = to_string(config);
    if (auto found = before.extract(name)) {
      all.push_back(&ready_.insert(std::move(found)).position->second);
      continue;
    }
    Run run = make(config);
    // The first runs warm up. The time of the last one determines the number of runs in a
    // measurement.
    time_micros(run, 1, tuned::CacheState::kWarm);
    const double once = std::max(time_micros(run, 1, tuned::CacheState::kWarm), 0.1);
    const int repeats = std::clamp(static_cast<int>(std::ceil(options_.min_micros / once)), 1,
                                   options_.max_repeats);
    all.push_back(&ready_.try_emplace(name, std::move(run), repeats).first->second);
  }
  return all;
}

std::vector<std::vector<double>> RoundTimer::measure(std::span<const KernelConfig> configs,
                                                     int rounds, tuned::CacheState l2,
                                                     const MakeRun& make) {
  const std::vector<const Ready*> all = ready(configs, make);
  std::vector<std::vector<double>> times(configs.size());
  for (int round = 0; round < rounds; ++round) {
    base::settle();
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % configs.size();
      const int repeats = l2 == tuned::CacheState::kCold ? 1 : all[at]->repeats;
      times[at].push_back(time_micros(all[at]->run, repeats, l2));
    }
  }
  return times;
}

}  // namespace annulus::autotune
