// annulus run: plans a problem, runs it, and holds the answer against the oracle.
#include <algorithm>
#include <optional>
#include <span>

#include "annulus/oracle.h"
#include "api/impl.h"
#include "attention/tiles/tile_list.h"
#include "base/fail.h"
#include "base/files.h"
#include "pattern/classify.h"
#include "program/operands.h"
#include "program/options.h"
#include "program/report.h"
#include "program/ring_run.h"

namespace annulus::program {
namespace {

Answer compute(const Device& device, const Plan& plan, const ProblemInput& input, int repeat) {
  const Problem& problem = input.problem;
  Answer answer;
  answer.o = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_v, input.order);
  // A mark in every element: what the kernel does not write cannot pass for an answer.
  std::fill(answer.o.bits.begin(), answer.o.bits.end(), std::uint16_t{0x7fff});
  DeviceOperands memory = upload(device, input.q, input.k, input.v, answer.o);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  {
    const Waiting waiting(fmt::format("running on {}", device.info().name));
    for (int i = 0; i < repeat; ++i) {
      answer.millis.push_back(api::run_millis(device, plan, memory.operands, workspace.data()));
    }
  }
  device.copy_to_host(answer.o.bits.data(), memory.o.data(), answer.o.bytes());
  answer.lse.resize(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));
  device.copy_to_host(answer.lse.data(), memory.lse.data(), answer.lse.size() * sizeof(float));
  return answer;
}

// All rows of a (batch, head) of which any is reached.
void widen_to_heads(std::vector<std::uint8_t>* rows, std::int64_t seq_q) {
  for (auto head = rows->begin(); head != rows->end(); head += seq_q) {
    if (std::find(head, head + seq_q, 1) != head + seq_q) std::fill(head, head + seq_q, 1);
  }
}

// `ring`: the tiles that read an operand are those of the shards, not of the plan.
Comparison check(const ProblemInput& input, const PlanInfo& plan, const Answer& answer, bool ring,
                 bool* sampled) {
  const Problem& problem = input.problem;
  const HostInputs inputs = host_inputs(input.q, input.k, input.v);
  ReferenceOptions options;
  options.tile_rows = plan.tile_rows;
  Progress progress("checking against the float64 oracle");
  options.progress = [&](double share) { progress.update(share); };
  const Reference oracle = reference(problem, inputs, options);
  *sampled = oracle.sampled();
  HostResult result;
  result.o = answer.o.bits.data();
  result.o_strides = answer.o.strides();
  result.lse = answer.lse.data();
  std::vector<std::uint8_t> reached =
      reached_rows(problem, inputs, plan.tile_rows, plan.tile_columns);
  if (reached.empty()) return compare(problem, oracle, result);
  if (ring) widen_to_heads(&reached, problem.seq_q);
  return compare(problem, oracle, result,
                 [&](std::int64_t row) { return reached[static_cast<std::size_t>(row)] != 0; });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of all distinct devices.
Counters sum_counters(const std::vector<Device>& devices) {
  Counters sum;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto same = [&](const Device& other) { return &other.impl() == &devices[i].impl(); };
    if (std::any_of(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      continue;
    }
    const Counters counters = devices[i].counters();
    if (sum.empty()) {
      sum = counters;
      continue;
    }
    for (std::size_t at = 0; at < counters.size(); ++at) sum[at].second += counters[at].second;
  }
  return sum;
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
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

}  // namespace

Exit run(const RunArguments& arguments) {
  // What takes minutes to compute must have somewhere to go.
  base::FileSystem files;
  for (const std::string& path : {arguments.output, arguments.picture}) {
    if (!path.empty()) base::check_can_write(files, path);
  }
  const ProblemInput input = make_input(arguments.problem, true);
  const Problem& problem = input.problem;
  const Device device = Device::open(device_options(arguments.device));
  const bool around = arguments.ranks > 1;
  const Plan plan = [&] {
    const Waiting waiting("planning and compiling");
    return device.plan(problem, plan_options(arguments.problem, input));
  }();
  const PlanInfo& info = plan.info();
  const double density = attention::pair_density(problem).value;
  device.counters(true);
  Answer answer;
  if (!around || !arguments.no_check) {
    answer = compute(device, plan, input, around ? 1 : arguments.repeat);
  }
  std::optional<RingAnswer> ring;
  std::optional<double> difference;  // between the ring and one rank
  std::vector<Device> devices = {device};
  if (around || !arguments.picture.empty()) {
    devices = ring_devices(device, arguments.device, arguments.ranks);
    ring = compute_ring(devices, arguments, input);
    if (!arguments.no_check) {
      difference = largest_difference(answer.o, ring->answer.o, problem.output_dtype());
    }
    answer = std::move(ring->answer);
    if (!arguments.picture.empty()) {
      base::write_file_atomically(files, arguments.picture,
                                  std::as_bytes(std::span(ring->picture)));
    }
  }
  const Counters counters = sum_counters(devices);
  const double millis = median(answer.millis);

  Comparison comparison;
  bool sampled = false;
  if (!arguments.no_check) {
    comparison = check(input, info, answer, around, &sampled);
  }
  if (!arguments.output.empty()) {
    save_output(arguments.output, answer.o, problem.output_dtype(), answer.lse);
  }
  const bool wrong = !arguments.no_check && !comparison.within_tolerance;
  const bool simulated = device.info().simulated;
  // What was run: a ring chooses a kernel and a configuration of its own, for launches of a shard.
  const std::string kernel = around ? ring->info.kernel : info.kernel;
  const std::string config = around ? ring->info.config : info.config;
  const std::string tuned = around ? ring->info.tuned : info.tuned;
  int launches = ring ? 0 : info.launches;
  for (std::size_t rank = 0; ring && rank < ring->info.ranks.size(); ++rank) {
    launches += ring->info.ranks[rank].launches;
  }

  if (arguments.json) {
    base::Json json;
    json["device"] = device.info().name;
    json["device_description"] = device.info().description;
    json["simulated"] = simulated;
    json["problem"] = problem_json(problem);
    json["input"] = input.origin;
    json["kernel"] = kernel;
    json["config"] = config;
    json["tuned"] = tuned;
    json["source"] = info.source;
    json["compile_ms"] = info.compile_ms;
    json["density"] = density;
    json["block_density"] = info.block_density.value;
    json["time_ms"] = millis;
    json["time_means"] = simulated ? "host wall time of the simulation" : "time on the device";
    json["launches"] = launches;
    json["ranks"] = arguments.ranks;
    json["bytes_sent"] = ring ? ring->info.bytes_sent : 0;
    json["bytes_plain_ring"] = ring ? ring->info.bytes_plain_ring : 0;
    json["peak_bytes_per_rank"] =
        ring ? ring->peak_bytes_per_rank : static_cast<std::int64_t>(plan.workspace_bytes());
    json["max_difference_from_one_rank"] = difference ? number(*difference) : base::Json(nullptr);
    if (!arguments.no_check) {
      json["error_row_max"] = number(comparison.error_row_max);
      json["error_o"] = number(comparison.error_o);
      json["error_lse"] = number(comparison.error_lse);
      json["within_tolerance"] = json["within_law"] = comparison.within_tolerance;
    } else {
      json["error_row_max"] = json["error_o"] = json["error_lse"] = nullptr;
      json["within_tolerance"] = json["within_law"] = nullptr;
    }
    json["checked_rows"] = comparison.checked_rows;
    json["tainted_rows"] = comparison.tainted_rows;
    base::Json counted = simulated ? base::Json::object() : base::Json(nullptr);
    std::uint64_t faults = 0;
    for (const auto& [name, value] : counters) {
      counted[name] = value;
      if (name == "faults") faults = value;
    }
    json["counters"] = counted;
    json["faults"] = faults;
    if (wrong) json["first_wrong"] = comparison.first_wrong;
    print_json(json);
  } else {
    print_line("problem", problem_text(problem));
    print_line("input", input.origin);
    print_line("device", fmt::format("{} ({}{})", device.info().name, device.info().description,
                                     simulated ? ", simulated" : ""));
    print_line("kernel", fmt::format("{}, configuration {}{}", kernel, config,
                                     tuned.empty() ? "" : ", tuned: " + tuned));
    print_line("made", fmt::format("{}, {:.1f} ms", info.source, info.compile_ms));
    print_line("density", fmt::format("{:.4f} of all pairs, {:.4f} of all blocks", density,
                                      info.block_density.value));
    print_line("time", fmt::format("{:.3f} ms{}, {} launch{}", millis,
                                   simulated ? " of this machine to simulate it (not the speed of "
                                               "a GPU)"
                                             : "",
                                   launches, launches == 1 ? "" : "es"));
    if (ring) print_ring(*ring, arguments, difference);
    if (arguments.no_check) {
      print_line("error", "not checked");
    } else {
      print_line("error",
                 fmt::format("row {:.2e}, head {:.2e}, LSE {:.2e} over {} {}rows: {}",
                             comparison.error_row_max, comparison.error_o, comparison.error_lse,
                             comparison.checked_rows, sampled ? "sampled " : "",
                             wrong ? "WRONG" : "within tolerance") +
                     (comparison.tainted_rows == 0
                          ? ""
                          : fmt::format("; {} rows read a NaN or an infinity and are not compared",
                                        comparison.tainted_rows)));
    }
    if (simulated) {
      std::string text;
      for (const auto& [name, value] : counters) {
        if (value != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
      }
      print_line("counted", text);
    }
  }
  if (wrong) {
    std::fprintf(stderr, "annulus run: wrong result: %s\n",
                 comparison.first_wrong.empty() ? "a head is beyond the tolerance"
                                                : comparison.first_wrong.c_str());
    return Exit::kWrongResult;
  }
  return Exit::kOk;
}

}  // namespace annulus::program
