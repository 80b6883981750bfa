// annulus run --requests: plans a batch, places a step of it on a device as an engine would, and
// compares each request with the oracle.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fail.h"
#include "program/cli/output.h"
#include "program/input/batch_input.h"
#include "program/input/host_tensor.h"
#include "program/run/checked.h"
#include "program/run/run.h"
#include "program/run/stream.h"

namespace annulus::program {
namespace {

struct BatchRun {
  BatchInput input;
  Device device;
  BatchPlan plan;
  std::vector<double> prepare_millis = {}, run_millis = {};
  double plan_seconds = 0, run_seconds = 0, check_seconds = 0;
  Counters counters = {};
  Checked checked = {};
};

class StopWatch {
 public:
  // The seconds since construction or since the previous read().
  double read() {
    const Clock::time_point before = std::exchange(at_, Clock::now());
    return std::chrono::duration<double>(at_ - before).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_ = Clock::now();
};

std::vector<RequestAnswer> compute(const BatchStep& step, int repeat, BatchRun* run) {
  const Device& device = run->device;
  const BatchPlan& plan = run->plan;
  device.counters(true);
  {
    const Waiting waiting(fmt::format("running on {}", device.info().name));
    for (int i = 0; i < repeat; ++i) {
      run->prepare_millis.push_back(
          timed_millis(device, [&] { plan.prepare(nullptr, step.metadata(), step.workspace()); }));
      run->run_millis.push_back(
          timed_millis(device, [&] { plan.run(nullptr, step.operands(), step.workspace()); }));
    }
  }
  run->counters = device.counters();
  const BatchStatus status = plan.status(step.workspace());
  if (status.rule != BatchRule::kNone) {
    base::fail(ErrorCode::kInternal, "request {} was found to have {}", status.request,
               to_string(status.rule));
  }
  bool untouched = true;
  std::vector<RequestAnswer> answers = step.answers(&untouched);
  if (!untouched) {
    base::fail(ErrorCode::kInternal, "rows of O that belong to no request were written");
  }
  return answers;
}

// Adds the comparison of request `r` to the comparison of all requests.
void join(std::size_t r, const Comparison& made, Comparison* all) {
  all->error_row_max = std::max(all->error_row_max, made.error_row_max);
  all->error_o = std::max(all->error_o, made.error_o);
  all->error_lse = std::max(all->error_lse, made.error_lse);
  all->checked_rows += made.checked_rows;
  all->tainted_rows += made.tainted_rows;
  all->wrong_rows += made.wrong_rows;
  if (made.within_tolerance) return;
  if (all->within_tolerance) {
    all->first_wrong =
        fmt::format("request {}: {}", r,
                    made.first_wrong.empty() ? "a head is beyond the tolerance" : made.first_wrong);
  }
  all->within_tolerance = false;
}

Checked check(const BatchInput& input, const std::vector<RequestTensors>& tensors,
              const std::vector<RequestAnswer>& answers) {
  const auto pairs_of = [&](const Request& request) {
    return static_cast<double>(input.problem.heads) * static_cast<double>(request.queries) *
           static_cast<double>(request.keys);
  };
  double pairs = 0, done = 0;
  for (const Request& request : input.requests) pairs += pairs_of(request);
  Checked checked;
  Comparison& all = checked.comparison.emplace();
  all.within_tolerance = true;
  Progress progress("checking against the float64 oracle");
  for (std::size_t r = 0; r < input.requests.size(); ++r) {
    const Request& request = input.requests[r];
    if (request.queries == 0) continue;
    const double own = pairs_of(request);
    ReferenceOptions options;
    // The requests share the limit of pairs that the oracle has for one problem.
    const double share = static_cast<double>(options.max_pairs) * own / std::max(pairs, 1.0);
    options.max_pairs = static_cast<std::int64_t>(share);
    options.progress = [&](double of_one) {
      progress.update((done + of_one * own) / std::max(pairs, 1.0));
    };
    const Reference expected =
        reference(input.problem, request, tensors[r], options, static_cast<std::int64_t>(r));
    checked.sampled |= expected.sampled();
    join(r, compare(input.problem, request, expected, answers[r]), &all);
    done += own;
  }
  return checked;
}

// Writes O and LSE of all requests, one request after another.
void save(const std::string& path, const BatchInput& input,
          const std::vector<RequestAnswer>& answers) {
  const BatchProblem& problem = input.problem;
  HostTensor o = make_tensor(1, input.queries(), problem.heads, problem.dim_v, Order::kBshd);
  std::vector<float> lse(static_cast<std::size_t>(problem.heads * input.queries()));
  std::int64_t row = 0;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const std::int64_t queries = input.requests[r].queries;
    std::ranges::copy(answers[r].o, o.bits.begin() + row * problem.heads * problem.dim_v);
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      std::copy_n(answers[r].lse.begin() + h * queries, queries,
                  lse.begin() + h * input.queries() + row);
    }
    row += queries;
  }
  save_output(path, o, problem.dtype, lse);
}

base::Json batch_run_json(const BatchRun& run) {
  const DeviceInfo& device = run.device.info();
  const BatchInfo& plan = run.plan.info();
  base::Json json;
  json["device"] = device.name;
  json["device_description"] = device.description;
  json["simulated"] = device.simulated;
  json["problem"] = batch_json(run.input);
  json["input"] = run.input.origin;
  json["config"] = plan.config;
  json["part_keys"] = plan.part_keys;
  json["workspace_bytes"] = run.plan.workspace_bytes();
  json["compile_ms"] = plan.compile_ms;
  json["prepare_ms"] = median(run.prepare_millis);
  json["time_ms"] = median(run.run_millis);
  json["time_means"] = time_meaning(device);
  json["plan_seconds"] = run.plan_seconds;
  json["run_seconds"] = run.run_seconds;
  json["check_seconds"] = run.check_seconds;
  json["launches"] = plan.launches;
  add_check(run.checked, &json);
  add_counters(device, run.counters, &json);
  if (run.checked.wrong()) json["first_wrong"] = run.checked.comparison->first_wrong;
  return json;
}

void print_batch_run(const BatchRun& run, bool verbose) {
  const DeviceInfo& device = run.device.info();
  const BatchInfo& plan = run.plan.info();
  print_line("problem", batch_text(run.input));
  print_line("input", run.input.origin);
  print_line("device", device_text(device));
  print_line("kernel",
             fmt::format("configuration {}; parts of {} keys", plan.config, plan.part_keys));
  print_line("made", fmt::format("{:.1f} ms", plan.compile_ms));
  print_line("prepare", time_text(device, run.prepare_millis, 1));
  print_line("time", time_text(device, run.run_millis, plan.launches));
  print_line("error", check_text(run.checked));
  print_line("took", took_text(run.plan_seconds, run.run_seconds,
                               run.checked.comparison ? &run.check_seconds : nullptr));
  if (device.simulated && verbose) print_line("counted", counters_text(run.counters));
}

}  // namespace

Exit run_batch(const RunArguments& arguments) {
  StopWatch watch;
  BatchInput input = make_batch(arguments.problem, arguments.batch);
  check_host_memory(input);
  const Device device = Device::open(device_options(arguments.device));
  const BatchPlan plan = plan_of(device, input, arguments.problem.max_work);
  BatchRun run{.input = std::move(input), .device = device, .plan = plan};
  run.plan_seconds = watch.read();
  const BatchStep step(device, run.plan, run.input.requests, run.input.placing);
  const std::vector<RequestAnswer> answers = compute(step, arguments.repeat, &run);
  run.run_seconds = watch.read();
  if (!arguments.no_check) {
    run.checked = check(run.input, step.tensors(), answers);
    run.check_seconds = watch.read();
  }
  if (!arguments.output.empty()) save(arguments.output, run.input, answers);
  if (arguments.json) {
    print_json(batch_run_json(run));
  } else {
    print_batch_run(run, arguments.device.verbose);
  }
  return exit_of(run.checked);
}

}  // namespace annulus::program
