// annulus explain --requests: prints the plan of a batch within the given bounds and the reasons.
// It compiles the kernels and runs nothing.
#include <fmt/core.h>

#include <cstdio>

#include "program/cli/output.h"
#include "program/input/batch_input.h"
#include "program/run/explain.h"

namespace annulus::program {
namespace {

base::Json batch_plan_json(const Device& device, const BatchInput& input, const BatchPlan& plan) {
  const BatchInfo& info = plan.info();
  base::Json json;
  json["device"] = device.info().name;
  json["architecture"] = device.info().architecture;
  json["simulated"] = device.info().simulated;
  json["problem"] = batch_json(input);
  json["config"] = info.config;
  json["decisions"] = info.decisions;
  json["plan_ms"] = info.plan_ms;
  json["compile_ms"] = info.compile_ms;
  json["part_keys"] = info.part_keys;
  json["launches"] = info.launches;
  json["ctas"] = info.ctas;
  json["threads"] = info.threads;
  json["shared_bytes"] = info.shared_bytes;
  json["shared_bytes_limit"] = device.info().shared_bytes_per_block;
  json["registers"] = info.registers;
  json["local_bytes"] = info.local_bytes;
  json["bytes_under_way"] = info.bytes_under_way;
  json["workspace_bytes"] = plan.workspace_bytes();
  json["plan_bytes"] = info.device_bytes;
  json["specialised_source"] = info.specialised_source;
  return json;
}

void print_batch_plan(const Device& device, const BatchInput& input, const BatchPlan& plan,
                      bool brief) {
  const BatchInfo& info = plan.info();
  print_line("problem", batch_text(input));
  print_line("device", device_text(device.info()));
  print_line("kernel",
             fmt::format("configuration {}; parts of {} keys", info.config, info.part_keys));
  print_line("made",
             fmt::format("{:.1f} ms; the plan itself {:.2f} ms", info.compile_ms, info.plan_ms));
  print_line("launches", fmt::format("{} for a layer, of {} CTAs", info.launches, info.ctas));
  print_line(
      "resources",
      fmt::format("{} threads, {} {}registers, {} bytes of local memory, {} of {} bytes of "
                  "shared memory",
                  info.threads, info.registers, device.info().simulated ? "(estimated) " : "",
                  info.local_bytes, info.shared_bytes, device.info().shared_bytes_per_block));
  print_line("memory",
             fmt::format("{} bytes of workspace, {} of the plan's own; {} of K and V "
                         "under way on a multiprocessor",
                         plan.workspace_bytes(), info.device_bytes, info.bytes_under_way));
  if (brief) return;
  std::printf("\nwhy\n");
  for (const std::string& line : info.decisions) std::printf("  %s\n", line.c_str());
  std::printf("\nspecialised source\n");
  std::fputs(info.specialised_source.c_str(), stdout);
}

}  // namespace

Exit explain_batch(const ExplainArguments& arguments) {
  const BatchInput input = make_batch(arguments.problem, arguments.batch);
  const Device device = Device::open(device_options(arguments.device));
  const BatchPlan plan = plan_of(device, input, arguments.problem.max_work);
  if (arguments.source) {
    std::fputs(plan.info().specialised_source.c_str(), stdout);
  } else if (arguments.json) {
    print_json(batch_plan_json(device, input, plan));
  } else {
    print_batch_plan(device, input, plan, arguments.brief);
  }
  return Exit::kOk;
}

}  // namespace annulus::program
