#include "program/tune/tuned_text.h"

#include <fmt/core.h>

#include <chrono>

namespace annulus::program {

std::string short_name(const TunedEntry& entry) { return entry.name.substr(0, 12); }

std::string problem_of(const TunedEntry& entry) {
  return fmt::format("B{} H{} Hkv{} Sq{} Sk{}, {}", entry.batch, entry.heads, entry.kv_heads,
                     entry.seq_q, entry.seq_k, entry.kind);
}

double ratio(const TunedEntry& entry) { return entry.time / entry.default_time; }

std::string version_text(std::int64_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string date_text(std::int64_t when) {
  // The last second of the year 9999. A file may state other numbers, which are not dates.
  constexpr std::int64_t kMost = 253'402'300'799;
  if (when < 0 || when > kMost) return "?";
  const std::chrono::sys_seconds at{std::chrono::seconds(when)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count());
}

base::Json tuned_json(const TunedEntry& entry) {
  return {{"path", entry.path},
          {"name", entry.name},
          {"packed", entry.packed},
          {"outdated", entry.outdated},
          {"device", entry.device},
          {"shape", entry.shape},
          {"kind", entry.kind},
          {"config", entry.config},
          {"default_config", entry.default_config},
          {"runner_up", entry.runner_up},
          {"predicted", entry.predicted},
          {"complete", entry.complete},
          {entry.predicted ? "predicted_cycles" : "micros", entry.time},
          {entry.predicted ? "default_predicted_cycles" : "default_micros", entry.default_time},
          {"ratio", ratio(entry)},
          {"ratio_low", entry.ratio_low},
          {"ratio_high", entry.ratio_high},
          {"cold_cache", entry.cold_cache},
          {"other_ratio", entry.other_ratio},
          {"rounds", entry.rounds},
          {"repeated_rounds", entry.repeated_rounds},
          {"candidates", entry.candidates},
          {"library_version", entry.library_version},
          {"driver_version", entry.driver_version},
          {"nvrtc_version", entry.nvrtc_version},
          {"clock_mhz", entry.clock_mhz},
          {"memory_clock_mhz", entry.memory_clock_mhz},
          {"when", entry.when},
          {"problem",
           {{"batch", entry.batch},
            {"heads", entry.heads},
            {"kv_heads", entry.kv_heads},
            {"seq_q", entry.seq_q},
            {"seq_k", entry.seq_k},
            {"pattern", entry.pattern}}}};
}

}  // namespace annulus::program
