// The C interface of kernels compiled ahead. Each function converts its arguments and calls
// annulus/kernels.h.
#include "annulus/c_tools.h"

#include "annulus/kernels.h"
#include "api/warm_until.h"
#include "c_api/functions.h"
#include "c_api/problems.h"

namespace annulus::c_api {
namespace {

constexpr StructName kWarmOptions = {"annulus_warm_options", "ANNULUS_WARM_OPTIONS_INIT"};
constexpr StructName kWarmResult = {"annulus_warm_result", "ANNULUS_WARM_RESULT_INIT"};
constexpr StructName kWarmFailure = {"annulus_warm_failure", "ANNULUS_WARM_FAILURE_INIT"};
constexpr StructName kPruneOptions = {"annulus_prune_options", "ANNULUS_PRUNE_OPTIONS_INIT"};
constexpr StructName kPruneResult = {"annulus_prune_result", "ANNULUS_PRUNE_RESULT_INIT"};
constexpr StructName kVerifyResult = {"annulus_verify_result", "ANNULUS_VERIFY_RESULT_INIT"};

struct WarmObject {
  std::mutex mutex;  // protects all members below
  WarmWork work;
  std::vector<WarmFailure> failures;  // failures of the last call
};
HandleTable<WarmObject>& works() {
  static auto* table = new HandleTable<WarmObject>("work to compile ahead", 0xd3);
  return *table;
}
using WarmPin = HandleTable<WarmObject>::Pin;

WarmOptions options_of(const annulus_warm_options& c) {
  WarmOptions options;
  if (c.folder != nullptr) options.folder = c.folder;
  const std::string_view devices = c.devices == nullptr ? "" : c.devices;
  for (std::size_t begin = 0; begin < devices.size();) {
    const std::size_t end = std::min(devices.find(',', begin), devices.size());
    options.devices.emplace_back(devices.substr(begin, end - begin));
    begin = end + 1;
  }
  if (c.template_dir != nullptr) options.template_dir = c.template_dir;
  options.tuned_path = path_of(c.tuned_path);
  // Other numbers are refused with their value, which the cast may change.
  if (c.threads < 0 || c.threads > std::numeric_limits<int>::max()) {
    base::fail(ErrorCode::kInvalidArgument,
               "threads is {}; give a number of threads, or 0 for one per processor", c.threads);
  }
  options.threads = static_cast<int>(c.threads);
  if (c.progress != nullptr) {
    options.progress = [call = c.progress, user = c.progress_user](const WarmProgress& at) {
      const annulus_warm_progress progress = {sizeof progress, at.done, at.kernels, at.last.c_str(),
                                              at.seconds};
      call(user, &progress);
    };
  }
  return options;
}

annulus_warm_result to_c(const WarmResult& result) {
  annulus_warm_result c = ANNULUS_WARM_RESULT_INIT;
  c.kernels = result.kernels;
  c.compiled = result.compiled;
  c.there = result.there;
  c.left = result.left;
  c.bytes = result.bytes;
  c.failures = std::ssize(result.failures);
  c.cancelled = result.cancelled ? 1 : 0;
  c.seconds = result.seconds;
  return c;
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_shape_line(const annulus_problem* problem,
                                  const annulus_plan_options* options, annulus_text** text) {
  return guarded([&] {
    check_pointer("text (where the handle goes)", text);
    give_text(text, shape_line(problem_of(problem), plan_options_of(options)));
  });
}

annulus_status annulus_gpu_list(annulus_text** text) {
  return guarded([&] {
    check_pointer("text (where the handle goes)", text);
    std::vector<std::string> told;
    for (const KnownGpu& gpu : known_gpus()) {
      told.push_back(fmt::format("{}, {}: {}", gpu.name, gpu.architecture, gpu.description));
    }
    give_text(text, lines(told));
  });
}

annulus_status annulus_warm_work_create(annulus_warm_work** work) {
  return guarded([&] {
    check_pointer("work (where the handle goes)", work);
    give(work, works(), std::make_unique<WarmObject>());
  });
}

annulus_status annulus_warm_work_destroy(annulus_warm_work* work) {
  return guarded([&] { works().erase(number(work)); });
}

annulus_status annulus_warm_work_add(annulus_warm_work* work, const annulus_problem* problem,
                                     const annulus_plan_options* options,
                                     const annulus_selection* selection) {
  return guarded([&] {
    const WarmPin pin(works(), number(work));
    WarmShape shape{problem_of(problem), plan_options_of(options), {}};
    if (selection != nullptr) shape.selection = selection_of(selection);
    const std::lock_guard guard(pin->mutex);
    pin->work.shapes.push_back(std::move(shape));
  });
}

annulus_status annulus_warm_work_add_batch(annulus_warm_work* work,
                                           const annulus_batch_problem* problem,
                                           const annulus_batch_options* options) {
  return guarded([&] {
    const WarmPin pin(works(), number(work));
    WarmBatch batch{batch_problem_of(problem), batch_options_of(options)};
    const std::lock_guard guard(pin->mutex);
    pin->work.batches.push_back(std::move(batch));
  });
}

annulus_status annulus_warm_work_add_general(annulus_warm_work* work) {
  return guarded([&] {
    const WarmPin pin(works(), number(work));
    const std::lock_guard guard(pin->mutex);
    pin->work.general = true;
  });
}

annulus_status annulus_warm_work_run(annulus_warm_work* work, const annulus_warm_options* given,
                                     annulus_warm_result* to) {
  return guarded([&] {
    const WarmPin pin(works(), number(work));
    check_output(kWarmResult, to);
    const annulus_warm_options c =
        read_struct(kWarmOptions, given, annulus_warm_options ANNULUS_WARM_OPTIONS_INIT);
    const std::function<bool()> cancelled = cancelled_by(c.cancel);
    WarmWork copy;
    {
      const std::lock_guard guard(pin->mutex);
      copy = pin->work;
    }
    WarmResult result = warm_until(copy, options_of(c), cancelled);
    write_struct(kWarmResult, to, to_c(result));
    const std::lock_guard guard(pin->mutex);
    pin->failures = std::move(result.failures);
  });
}

annulus_status annulus_warm_work_get_failure(annulus_warm_work* work, size_t index,
                                             annulus_warm_failure* to) {
  return guarded([&] {
    const WarmPin pin(works(), number(work));
    const std::lock_guard guard(pin->mutex);
    if (index >= pin->failures.size()) {
      base::fail(ErrorCode::kInvalidArgument, "failure {} of {}", index, pin->failures.size());
    }
    const WarmFailure& failure = pin->failures[index];
    annulus_warm_failure c = ANNULUS_WARM_FAILURE_INIT;
    c.device = failure.device.c_str();
    c.wanted = failure.wanted.c_str();
    c.error = failure.error.c_str();
    c.status = static_cast<int>(failure.code);
    write_struct(kWarmFailure, to, c);
  });
}

annulus_status annulus_kernels_prune(const annulus_prune_options* given, annulus_prune_result* to,
                                     annulus_text** problems) {
  return guarded([&] {
    check_output(kPruneResult, to);
    const annulus_prune_options c =
        read_struct(kPruneOptions, given, annulus_prune_options ANNULUS_PRUNE_OPTIONS_INIT);
    const PruneResult result = prune_kernels({.folder = path_of(c.folder),
                                              .older_than_seconds = c.older_than_seconds,
                                              .useless = truth("useless", c.useless),
                                              .max_bytes = c.max_bytes,
                                              .dry_run = truth("dry_run", c.dry_run)});
    if (problems != nullptr) give_text(problems, lines(result.problems));
    annulus_prune_result filled = ANNULUS_PRUNE_RESULT_INIT;
    filled.removed = result.removed;
    filled.removed_bytes = result.removed_bytes;
    filled.left = result.left;
    filled.left_bytes = result.left_bytes;
    write_struct(kPruneResult, to, filled);
  });
}

annulus_status annulus_kernels_verify(const char* folder, int32_t remove, annulus_verify_result* to,
                                      annulus_text** damaged) {
  return guarded([&] {
    check_output(kVerifyResult, to);
    const VerifyResult result = verify_kernels(path_of(folder), truth("remove", remove));
    std::vector<std::string> told;
    for (const DamagedKernel& each : result.damaged) told.push_back(each.name + ": " + each.why);
    if (damaged != nullptr) give_text(damaged, lines(told));
    annulus_verify_result filled = ANNULUS_VERIFY_RESULT_INIT;
    filled.kernels = result.kernels;
    filled.bytes = result.bytes;
    filled.damaged = std::ssize(result.damaged);
    write_struct(kVerifyResult, to, filled);
  });
}

}  // extern "C"
