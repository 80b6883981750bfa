#include "program/run_result.h"

#include <fmt/core.h>

#include <algorithm>

#include "program/report.h"

namespace annulus::program {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What was run: a ring chooses a kernel and a configuration of its own, for launches of a shard.
struct Choice {
  std::string kernel;
  std::string config;
  std::string tuned;
};

Choice choice_of(const RunResult& result) {
  if (result.around) {
    const RingInfo& ring = result.ring->info;
    return {ring.kernel, ring.config, ring.tuned};
  }
  const PlanInfo& plan = result.plan.info();
  return {plan.kernel, plan.config, plan.tuned};
}

int launches_of(const RunResult& result) {
  if (!result.ring) return result.plan.info().launches;
  int launches = 0;
  for (const auto& rank : result.ring->info.ranks) launches += rank.launches;
  return launches;
}

void add_ring(const RunResult& result, const RunArguments& arguments, base::Json* json) {
  const RingAnswer* ring = result.ring ? &*result.ring : nullptr;
  (*json)["ranks"] = arguments.ranks;
  (*json)["bytes_sent"] = ring ? ring->info.bytes_sent : 0;
  (*json)["bytes_plain_ring"] = ring ? ring->info.bytes_plain_ring : 0;
  (*json)["peak_bytes_per_rank"] =
      ring ? ring->peak_bytes_per_rank : static_cast<std::int64_t>(result.plan.workspace_bytes());
  (*json)["max_difference_from_one_rank"] =
      result.difference ? number(*result.difference) : base::Json(nullptr);
}

void add_check(const RunResult& result, base::Json* json) {
  const Comparison made = result.comparison.value_or(Comparison{});
  for (const char* name : {"error_row_max", "error_o", "error_lse", "within_law",
                           "within_tolerance"}) {  // within_law is an older name
    (*json)[name] = nullptr;
  }
  if (result.comparison) {
    (*json)["error_row_max"] = number(made.error_row_max);
    (*json)["error_o"] = number(made.error_o);
    (*json)["error_lse"] = number(made.error_lse);
    if (!result.compared_nothing()) {
      (*json)["within_law"] = (*json)["within_tolerance"] = made.within_tolerance;
    }
  }
  (*json)["compared_nothing"] = result.compared_nothing();
  (*json)["overflowed_values"] = result.input.overflowed;
  (*json)["checked_rows"] = made.checked_rows;
  (*json)["tainted_rows"] = made.tainted_rows;
}

void add_counters(const RunResult& result, base::Json* json) {
  base::Json counted = result.device.info().simulated ? base::Json::object() : base::Json(nullptr);
  std::uint64_t faults = 0;
  for (const auto& [name, value] : result.counters) {
    counted[name] = value;
    if (name == "faults") faults = value;
  }
  (*json)["counters"] = counted;
  (*json)["faults"] = faults;
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// The predicted time of a run and its range; in a ring those of the rank that computes longest.
struct PredictedTime {
  double micros = 0, least = 0, most = 0;
};
PredictedTime predicted_time(const RunResult& result) {
  if (!result.around) {
    const PlanPrediction made = result.plan.predict();
    return {made.predicted_micros, made.least_micros, made.most_micros};
  }
  PredictedTime longest;
  for (const RingRankInfo& rank : result.ring->info.ranks) {
    if (rank.predicted_micros <= longest.micros) continue;
    longest = {rank.predicted_micros, rank.least_micros, rank.most_micros};
  }
  return longest;
}

std::string predicted_text(const RunResult& result) {
  const PredictedTime time = predicted_time(result);
  return fmt::format("{:.1f} us ({:.1f} to {:.1f}) on paper, {}; not measured", time.micros,
                     time.least, time.most,
                     result.around ? "for the rank that computes longest, copies not counted"
                                   : "held up by " + result.plan.predict().predicted_limit);
}

void print_ring(const RingAnswer& ring, const RunArguments& arguments,
                std::optional<double> difference) {
  print_line("ring", fmt::format("{} ranks, {} shards, planned in {:.1f} ms",
                                 ring.info.ranks.size(), arguments.shard, ring.info.plan_ms));
  print_line("sent",
             fmt::format("{}, of {} if every shard went to every rank",
                         bytes_text(ring.info.bytes_sent), bytes_text(ring.info.bytes_plain_ring)));
  print_line("memory", fmt::format("{} on the fullest rank, besides operands and lists",
                                   bytes_text(ring.peak_bytes_per_rank)));
  if (difference) {
    print_line("one rank", fmt::format("differs by at most {:.2e} from the ring", *difference));
  }
}

std::string check_text(const RunResult& result) {
  if (!result.comparison) return "not checked";
  const Comparison& made = *result.comparison;
  if (result.compared_nothing()) {
    return fmt::format("nothing was compared: all {} rows read a NaN or an infinity",
                       made.tainted_rows);
  }
  const std::string text =
      fmt::format("row {:.2e}, head {:.2e}, LSE {:.2e} over {} {}rows: {}", made.error_row_max,
                  made.error_o, made.error_lse, made.checked_rows, result.sampled ? "sampled " : "",
                  result.wrong() ? "WRONG" : "within tolerance");
  if (made.tainted_rows == 0) return text;
  return text +
         fmt::format("; {} rows read a NaN or an infinity and are not compared", made.tainted_rows);
}

// Those that are not 0.
std::string counters_text(const Counters& counters) {
  std::string text;
  for (const auto& [name, value] : counters) {
    if (value != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace

base::Json run_json(const RunResult& result, const RunArguments& arguments) {
  const DeviceInfo& device = result.device.info();
  const PlanInfo& plan = result.plan.info();
  const Choice choice = choice_of(result);
  base::Json json;
  json["device"] = device.name;
  json["device_description"] = device.description;
  json["simulated"] = device.simulated;
  json["problem"] = problem_json(result.input.problem);
  json["input"] = result.input.origin;
  json["kernel"] = choice.kernel;
  json["config"] = choice.config;
  json["tuned"] = choice.tuned;
  json["source"] = plan.source;
  json["compile_ms"] = plan.compile_ms;
  json["density"] = result.density ? base::Json(*result.density) : base::Json(nullptr);
  json["block_density"] = plan.block_density.value;
  json["time_ms"] = median(result.millis);
  const PredictedTime predicted = predicted_time(result);
  json["predicted_micros"] = number(predicted.micros);
  json["predicted_range_micros"] = {number(predicted.least), number(predicted.most)};
  json["plan_seconds"] = result.plan_seconds;
  json["run_seconds"] = result.run_seconds;
  json["check_seconds"] = result.check_seconds;
  json["time_means"] = device.simulated ? "host wall time of the simulation" : "time on the device";
  json["launches"] = launches_of(result);
  add_ring(result, arguments, &json);
  add_check(result, &json);
  add_counters(result, &json);
  if (result.wrong()) json["first_wrong"] = result.comparison->first_wrong;
  return json;
}

void print_run(const RunResult& result, const RunArguments& arguments) {
  const DeviceInfo& device = result.device.info();
  const PlanInfo& plan = result.plan.info();
  const Choice choice = choice_of(result);
  print_line("problem", problem_text(result.input.problem));
  print_line("input", result.input.origin);
  print_line("device", fmt::format("{} ({}{})", device.name, device.description,
                                   device.simulated ? ", simulated" : ""));
  print_line("kernel", fmt::format("{}, configuration {}{}", choice.kernel, choice.config,
                                   choice.tuned.empty() ? "" : ", tuned: " + choice.tuned));
  print_line("made", fmt::format("{}, {:.1f} ms", plan.source, plan.compile_ms));
  print_line("density", density_text(result.density, plan.block_density.value));
  const int launches = launches_of(result);
  print_line("time", fmt::format("{:.3f} ms{}, {} launch{}", median(result.millis),
                                 device.simulated ? " of this machine to simulate it (not the "
                                                    "speed of a GPU)"
                                                  : "",
                                 launches, launches == 1 ? "" : "es"));
  if (device.simulated) print_line("predicted", predicted_text(result));
  if (result.ring) print_ring(*result.ring, arguments, result.difference);
  print_line("error", check_text(result));
  std::string took = fmt::format("{:.1f} s to plan and compile, {:.1f} s to run",
                                 result.plan_seconds, result.run_seconds);
  if (result.comparison) took += fmt::format(", {:.1f} s to check", result.check_seconds);
  print_line("took", took);
  if (device.simulated && arguments.device.verbose)
    print_line("counted", counters_text(result.counters));
}

}  // namespace annulus::program
