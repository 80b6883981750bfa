// annulus explain: prints the plan of a problem and the reasons. It runs nothing. It compiles the
// kernel, unless the GPU is not in this machine.
#include "program/run/explain.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "program/cli/interruption.h"
#include "program/cli/output.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"

namespace annulus::program {
namespace {

// A plan on an open device, or for a GPU that is not in this machine.
struct Explained {
  DeviceInfo device;
  PlanInfo info;
  PlanPrediction predicted;
  bool here = true;
};

base::Json plan_json(const Explained& plan, const Problem& problem,
                     const std::optional<double>& density) {
  const PlanInfo& info = plan.info;
  const PlanPrediction& predicted = plan.predicted;
  // The value is null if the kernel was not compiled.
  const auto compiled = [&](const auto& value) {
    return plan.here ? base::Json(value) : base::Json(nullptr);
  };
  base::Json json;
  json["predicted_micros"] = predicted.predicted_micros;
  json["predicted_range_micros"] = {predicted.min_micros, predicted.max_micros};
  json["predicted_limit"] = predicted.predicted_limit;
  for (const auto& [pipe, share] : predicted.predicted_busy) json["predicted_busy"][pipe] = share;
  json["device"] = plan.device.name;
  json["architecture"] = plan.device.architecture;
  json["simulated"] = plan.device.simulated;
  json["here"] = plan.here;
  json["problem"] = problem_json(problem);
  json["kernel"] = info.kernel;
  json["config"] = info.config;
  json["tuned"] = info.tuned;
  json["decisions"] = info.decisions;
  json["rejected"] = info.rejected;
  json["source"] = compiled(info.source);
  json["plan_ms"] = info.plan_ms;
  json["compile_ms"] = compiled(info.compile_ms);
  json["density"] = density ? base::Json(*density) : base::Json(nullptr);
  json["block_density"] = info.block_density.value;
  json["full_tiles"] = info.full_tiles;
  json["partial_tiles"] = info.partial_tiles;
  json["launches"] = info.launches;
  json["ctas"] = info.ctas;
  json["threads"] = info.threads;
  json["shared_bytes"] = info.shared_bytes;
  json["shared_bytes_limit"] = plan.device.shared_bytes_per_block;
  json["registers"] = compiled(info.registers);
  json["local_bytes"] = compiled(info.local_bytes);
  json["ctas_per_multiprocessor"] = compiled(info.blocks_per_multiprocessor);
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
                         predicted.predicted_micros, predicted.min_micros, predicted.max_micros,
                         predicted.predicted_limit, pipes));
}

void print_plan(const Explained& plan, const Problem& problem, const std::optional<double>& density,
                bool brief) {
  const PlanInfo& info = plan.info;
  const DeviceInfo& device = plan.device;
  print_line("problem", problem_text(problem));
  print_line("device", fmt::format("{}, {}{}{}", device.name, device.architecture,
                                   device.simulated ? ", simulated" : "",
                                   plan.here ? "" : ", not here: " + device.description));
  print_line("kernel", fmt::format("{}, configuration {}{}", info.kernel, info.config,
                                   info.tuned.empty() ? "" : ", tuned"));
  print_line("made",
             fmt::format("{}; the plan itself {:.2f} ms, {} steps of work",
                         plan.here ? fmt::format("{}, {:.1f} ms", info.source, info.compile_ms)
                                   : "not compiled",
                         info.plan_ms, info.work_steps));
  print_line("density", density_text(density, info.block_density.value));
  const std::string shared = fmt::format("{} of {} bytes of shared memory", info.shared_bytes,
                                         device.shared_bytes_per_block);
  print_line("resources",
             plan.here
                 ? fmt::format("{} threads, {} {}registers, {} bytes of local memory, {}, {} CTAs "
                               "on a multiprocessor",
                               info.threads, info.registers, device.simulated ? "(estimated) " : "",
                               info.local_bytes, shared, info.blocks_per_multiprocessor)
                 : fmt::format("{} threads, {}", info.threads, shared));
  print_prediction(plan.predicted);
  if (brief) return;
  std::printf("\nwhy\n");
  for (const std::string& line : info.decisions) std::printf("  %s\n", line.c_str());
  std::printf("\nnot taken\n");
  for (const std::string& line : info.rejected) std::printf("  %s\n", line.c_str());
  std::printf("\nspecialised source\n");
  std::fputs(info.specialised_source.c_str(), stdout);
}

// Prints the plans. There are several if --device names an architecture.
void print(const std::vector<Explained>& plans, const ProblemInput& input,
           const ExplainArguments& arguments) {
  const auto separate = [&](const Explained& plan) {
    if (&plan != plans.data()) std::printf("\n");
  };
  if (arguments.source) {
    for (const Explained& plan : plans) {
      separate(plan);
      if (plans.size() > 1) std::printf("// %s\n", plan.device.name.c_str());
      std::fputs(plan.info.specialised_source.c_str(), stdout);
    }
    return;
  }
  const std::optional<double> density = density_of(input.problem, arguments.problem);
  if (!arguments.json) {
    for (const Explained& plan : plans) {
      separate(plan);
      print_plan(plan, input.problem, density, arguments.brief);
    }
    return;
  }
  if (plans.front().here || plans.front().device.name == arguments.device.name) {
    print_json(plan_json(plans.front(), input.problem, density));
    return;
  }
  base::Json json;
  json["plans"] = base::Json::array();
  for (const Explained& plan : plans)
    json["plans"].push_back(plan_json(plan, input.problem, density));
  print_json(json);
}

Exit explain(const ExplainArguments& arguments) {
  const Interruption interruption(Interruption::Kind::kEnds);
  const DeviceOptions on = device_options(arguments.device);
  const bool here = on.name.empty() || on.name.starts_with("cuda") || on.name.starts_with("sim:");
  if (arguments.batch.requests) {
    if (here) return explain_batch(arguments);
    base::fail(ErrorCode::kUnsupported,
               "--device is {}, but a batch is explained only on a device that opens; give "
               "sim:sm_80, sim:sm_90a or cuda:N",
               on.name);
  }
  const ProblemInput input = make_input(arguments.problem, false);
  const PlanOptions options = plan_options(arguments.problem, input);
  std::vector<Explained> plans;
  if (here) {
    const Device device = Device::open(on);
    const Waiting waiting("planning and compiling");
    const Plan plan = device.plan(input.problem, options);
    plans.push_back({device.info(), plan.info(), plan.predict()});
  } else {
    const Waiting waiting("planning");
    for (PlanPreview& each : preview_plan(on, input.problem, options)) {
      plans.push_back({std::move(each.device), std::move(each.info), std::move(each.predicted),
                       /*here=*/false});
    }
  }
  print(plans, input, arguments);
  return Exit::kOk;
}

void add_options(CLI::App& app, ExplainArguments* arguments) {
  add_device(app, &arguments->device,
             "; or a GPU that need not be here, by name (a100, l4, rtx4090, h100, ...) or by "
             "architecture (sm_89)");
  add_problem(app, &arguments->problem);
  add_batch(app, &arguments->batch);
  CLI::Option* source =
      app.add_flag("--source", arguments->source, "print the specialised source alone");
  CLI::Option* brief =
      app.add_flag("--brief", arguments->brief, "print the choice and the prediction, no reasons")
          ->excludes(source);
  add_json(app, &arguments->json)->excludes(source, brief);
}

}  // namespace

const Verb verb_explain = {
    "explain",
    "which kernel a problem gets, and why; runs nothing",
    {"annulus explain -H 32 --kv-heads 8 -S 8192 -p 'preset(longformer)'",
     "annulus explain --device h100 -S 16384 -p causal --brief",
     "annulus explain --device sim:sm_90a --requests '1/4096 x 8, 512/2048' -p causal"},
    add_verb<ExplainArguments, add_options, explain>};

}  // namespace annulus::program
