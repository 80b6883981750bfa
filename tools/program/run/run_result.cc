#include "program/run/run_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "program/cli/output.h"

namespace annulus::program {
namespace {

// The kernel that ran. A ring chooses a separate kernel and configuration for launches of a shard.
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

std::vector<std::string> rank_devices(const RingAnswer& ring) {
  std::vector<std::string> names;
  for (const RingRankInfo& rank : ring.info.ranks) names.push_back(rank.device);
  return names;
}

// "cuda:0 to cuda:3", or "cuda:0" if all ranks share it.
std::string devices_text(const RingAnswer& ring) {
  const std::vector<std::string> names = rank_devices(ring);
  const auto again = std::find(names.begin() + 1, names.end(), names.front());
  const std::string& last = *(again - 1);
  return last == names.front() ? last : fmt::format("{} to {}", names.front(), last);
}

base::Json json_of(const CommunicatorEvent& event) {
  base::Json json;
  json["kind"] = to_string(event.kind);
  json["unix_seconds"] = std::chrono::duration<double>(event.time.time_since_epoch()).count();
  json["generation"] = event.generation;
  json["run"] = event.run;
  json["ranks"] = event.ranks;
  json["text"] = event.text;
  return json;
}

void add_ring(const RunResult& result, const RunArguments& arguments, base::Json* json) {
  const RingAnswer* ring = result.ring ? &*result.ring : nullptr;
  (*json)["ranks"] = ring ? std::ssize(ring->info.ranks) : arguments.ranks;
  (*json)["rank_devices"] = ring ? base::Json(rank_devices(*ring)) : base::Json(nullptr);
  (*json)["processes"] = ring ? ring->processes : 1;
  (*json)["transport"] =
      ring ? base::Json(ring->processes > 1 ? "nccl" : "local") : base::Json(nullptr);
  (*json)["generation"] =
      ring && ring->generation > 0 ? base::Json(ring->generation) : base::Json(nullptr);
  (*json)["events"] = base::Json::array();
  if (ring) {
    for (const CommunicatorEvent& event : ring->events) (*json)["events"].push_back(json_of(event));
  }
  (*json)["bytes_sent"] = ring ? ring->info.bytes_sent : 0;
  (*json)["bytes_plain_ring"] = ring ? ring->info.bytes_plain_ring : 0;
  (*json)["bytes_needed"] = ring ? ring->info.bytes_needed : 0;
  (*json)["bytes_relayed"] = ring ? ring->info.bytes_relayed : 0;
  (*json)["route"] = ring ? base::Json(to_string(ring->info.route)) : base::Json(nullptr);
  (*json)["rounds"] = ring ? ring->info.rounds : 0;
  (*json)["messages"] = ring ? ring->info.messages : 0;
  (*json)["peak_bytes_per_rank"] =
      ring ? ring->peak_bytes_per_rank : static_cast<std::int64_t>(result.plan.workspace_bytes());
  (*json)["max_difference_from_one_rank"] =
      result.difference ? number(*result.difference) : base::Json(nullptr);
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// The predicted time of a run and its range. For a ring, they are the numbers of the slowest rank.
struct PredictedTime {
  double micros = 0, least = 0, most = 0;
};
PredictedTime predicted_time(const RunResult& result) {
  if (!result.around) {
    const PlanPrediction made = result.plan.predict();
    return {made.predicted_micros, made.min_micros, made.max_micros};
  }
  PredictedTime longest;
  for (const RingRankInfo& rank : result.ring->info.ranks) {
    if (rank.predicted_micros <= longest.micros) continue;
    longest = {rank.predicted_micros, rank.min_micros, rank.max_micros};
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
  print_line("ring", fmt::format("{} ranks{} on {}, {} shards, planned in {:.1f} ms",
                                 ring.info.ranks.size(),
                                 ring.processes > 1 ? " in processes of their own" : "",
                                 devices_text(ring), arguments.shard, ring.info.plan_ms));
  print_line("sent", fmt::format("{} in {} messages, {} needed, {} if every shard went everywhere",
                                 bytes_text(ring.info.bytes_sent), ring.info.messages,
                                 bytes_text(ring.info.bytes_needed),
                                 bytes_text(ring.info.bytes_plain_ring)));
  print_line("route", ring.info.route_reason);
  print_line("memory", fmt::format("{} on the fullest rank, besides operands",
                                   bytes_text(ring.peak_bytes_per_rank)));
  for (const CommunicatorEvent& event : ring.events) {
    if (event.kind == CommunicatorEventKind::kOpened) continue;
    print_line(to_string(event.kind),
               fmt::format("{} (rank {}, generation {}, run {})", event.text,
                           fmt::join(event.ranks, ", "), event.generation, event.run));
  }
  if (difference) {
    print_line("one rank", fmt::format("differs by at most {:.2e} from the ring", *difference));
  }
}

base::Json late_json(const std::optional<LateAnswer>& late) {
  if (!late) return nullptr;
  base::Json json;
  json["general_config"] = late->general_config;
  json["answered_ms"] = late->answered_millis;
  json["swapped_ms"] = late->why_general.empty() ? base::Json(late->swapped_millis) : base::Json();
  json["why_general"] = late->why_general;
  json["max_difference"] = late->difference ? number(*late->difference) : base::Json();
  return json;
}

void print_late(const LateAnswer& late, const std::string& own) {
  print_line("general", fmt::format("{} answered {:.1f} ms after planning began",
                                    late.general_config, late.answered_millis));
  if (!late.why_general.empty()) {
    print_line("own",
               fmt::format("given up after {:.1f} ms: {}", late.swapped_millis, late.why_general));
    return;
  }
  print_line("own", fmt::format("{} swapped in {:.1f} ms after it; differs by at most {:.2e}", own,
                                late.swapped_millis, late.difference.value_or(0)));
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
  json["late"] = late_json(result.late);
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
  json["time_means"] = time_meaning(device);
  json["launches"] = launches_of(result);
  add_ring(result, arguments, &json);
  add_check(result.checked, &json);
  json["overflowed_values"] = result.input.overflowed;
  add_counters(device, result.counters, &json);
  if (result.checked.wrong()) json["first_wrong"] = result.checked.comparison->first_wrong;
  return json;
}

void print_run(const RunResult& result, const RunArguments& arguments) {
  const DeviceInfo& device = result.device.info();
  const PlanInfo& plan = result.plan.info();
  const Choice choice = choice_of(result);
  print_line("problem", problem_text(result.input.problem));
  print_line("input", result.input.origin);
  print_line("device", device_text(device));
  print_line("kernel", fmt::format("{}, configuration {}{}", choice.kernel, choice.config,
                                   choice.tuned.empty() ? "" : ", tuned: " + choice.tuned));
  print_line("made", fmt::format("{}, {:.1f} ms", plan.source, plan.compile_ms));
  if (result.late) print_late(*result.late, plan.config);
  print_line("density", density_text(result.density, plan.block_density.value));
  print_line("time", time_text(device, result.millis, launches_of(result)));
  if (device.simulated) print_line("predicted", predicted_text(result));
  if (result.ring) print_ring(*result.ring, arguments, result.difference);
  print_line("error", check_text(result.checked));
  print_line("took", took_text(result.plan_seconds, result.run_seconds,
                               result.checked.comparison ? &result.check_seconds : nullptr));
  if (device.simulated && arguments.device.verbose)
    print_line("counted", counters_text(result.counters));
}

}  // namespace annulus::program
