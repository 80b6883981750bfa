// annulus explain: what a problem would get and why. Compiles the kernel, runs nothing.
#include <fmt/core.h>

#include <cstdio>

#include "program/interruption.h"
#include "program/options.h"
#include "program/problem_input.h"
#include "program/report.h"

namespace annulus::program {
namespace {

base::Json plan_json(const Device& device, const Plan& plan, const std::optional<double>& density) {
  const PlanInfo& info = plan.info();
  const PlanPrediction predicted = plan.predict();
  base::Json json;
  json["predicted_micros"] = predicted.predicted_micros;
  json["predicted_range_micros"] = {predicted.least_micros, predicted.most_micros};
  json["predicted_limit"] = predicted.predicted_limit;
  for (const auto& [pipe, share] : predicted.predicted_busy) json["predicted_busy"][pipe] = share;
  json["device"] = device.info().name;
  json["architecture"] = device.info().architecture;
  json["simulated"] = device.info().simulated;
  json["problem"] = problem_json(plan.problem());
  json["kernel"] = info.kernel;
  json["config"] = info.config;
  json["tuned"] = info.tuned;
  json["decisions"] = info.decisions;
  json["rejected"] = info.rejected;
  json["source"] = info.source;
  json["plan_ms"] = info.plan_ms;
  json["compile_ms"] = info.compile_ms;
  json["density"] = density ? base::Json(*density) : base::Json(nullptr);
  json["block_density"] = info.block_density.value;
  json["full_tiles"] = info.full_tiles;
  json["partial_tiles"] = info.partial_tiles;
  json["launches"] = info.launches;
  json["ctas"] = info.ctas;
  json["threads"] = info.threads;
  json["shared_bytes"] = info.shared_bytes;
  json["shared_bytes_limit"] = device.info().shared_bytes_per_block;
  json["registers"] = info.registers;
  json["local_bytes"] = info.local_bytes;
  json["ctas_per_multiprocessor"] = info.blocks_per_multiprocessor;
  json["work_steps"] = info.work_steps;
  json["plan_bytes"] = info.device_bytes;
  json["specialised_source"] = info.specialised_source;
  return json;
}

void print_prediction(const PlanPrediction& predicted) {
  std::string pipes;
  for (const auto& [pipe, share] : predicted.predicted_busy) {
    pipes += fmt::format(", {} {:.0f} %", pipe, 100 * share);
  }
  print_line("predicted",
             fmt::format("{:.1f} us ({:.1f} to {:.1f}), held up by {}{} (on paper; not measured)",
                         predicted.predicted_micros, predicted.least_micros, predicted.most_micros,
                         predicted.predicted_limit, pipes));
}

void print_plan(const Device& device, const Plan& plan, const std::optional<double>& density,
                bool brief) {
  const PlanInfo& info = plan.info();
  print_line("problem", problem_text(plan.problem()));
  print_line("device", fmt::format("{}, {}{}", device.info().name, device.info().architecture,
                                   device.info().simulated ? ", simulated" : ""));
  print_line("kernel", fmt::format("{}, configuration {}{}", info.kernel, info.config,
                                   info.tuned.empty() ? "" : ", tuned"));
  print_line("made", fmt::format("{}, {:.1f} ms; the plan itself {:.2f} ms, {} steps of work",
                                 info.source, info.compile_ms, info.plan_ms, info.work_steps));
  print_line("density", density_text(density, info.block_density.value));
  print_line(
      "resources",
      fmt::format("{} threads, {} {}registers, {} bytes of local memory, {} of {} bytes of "
                  "shared memory, {} CTAs on a multiprocessor",
                  info.threads, info.registers, device.info().simulated ? "(estimated) " : "",
                  info.local_bytes, info.shared_bytes, device.info().shared_bytes_per_block,
                  info.blocks_per_multiprocessor));
  print_prediction(plan.predict());
  if (brief) return;
  std::printf("\nwhy\n");
  for (const std::string& line : info.decisions) std::printf("  %s\n", line.c_str());
  std::printf("\nnot taken\n");
  for (const std::string& line : info.rejected) std::printf("  %s\n", line.c_str());
  std::printf("\nspecialised source\n");
  std::fputs(info.specialised_source.c_str(), stdout);
}

}  // namespace

Exit explain(const ExplainArguments& arguments) {
  const Interruption interruption(Interruption::Kind::kEnds);
  if (arguments.batch.requests) return explain_batch(arguments);
  const ProblemInput input = make_input(arguments.problem, false);
  const PlanOptions options = plan_options(arguments.problem, input);
  const Device device = Device::open(device_options(arguments.device));
  const Plan plan = [&] {
    const Waiting waiting("planning and compiling");
    return device.plan(input.problem, options);
  }();
  if (arguments.source) {
    std::fputs(plan.info().specialised_source.c_str(), stdout);
    return Exit::kOk;
  }
  const std::optional<double> density = density_of(input.problem, arguments.problem);
  if (arguments.json) {
    print_json(plan_json(device, plan, density));
  } else {
    print_plan(device, plan, density, arguments.brief);
  }
  return Exit::kOk;
}

}  // namespace annulus::program
