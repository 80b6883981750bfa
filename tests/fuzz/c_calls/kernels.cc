// Calls that compile kernels ahead, or read folders of compiled kernels. No kernel is compiled,
// because each call that could compile is cancelled before it begins.

#include <fstream>
#include <string>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

std::string Program::kernel_folder() {
  const char* const drawn = path();
  if (drawn == nullptr || bytes_.below(2) == 0) {
    std::ofstream(setting().folder + "/kernels/00112233445566778899aabbccddeeff.kernel") << "x";
    return setting().folder + "/kernels";
  }
  return drawn;
}

void Program::add_warm_work() {
  auto* const work = pick<annulus_warm_work>(Kind::kWarmWork);
  switch (bytes_.below(4)) {
    case 0:
      returned(annulus_warm_work_add_general(work), "annulus_warm_work_add_general");
      return;
    case 1: {
      Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
      batch->pattern = pattern();
      batch->most.requests = small(4);
      Sized<annulus_batch_options> options(ANNULUS_BATCH_OPTIONS_INIT, bytes_);
      returned(annulus_warm_work_add_batch(work, batch.get(),
                                           bytes_.below(2) == 0 ? nullptr : options.get()),
               "annulus_warm_work_add_batch");
      return;
    }
    default: {
      auto described = problem(false);
      auto options = plan_options();
      auto chosen = selection(static_cast<std::int32_t>(bytes_.between(0, 4)));
      returned(annulus_warm_work_add(work, described.get(),
                                     bytes_.below(2) == 0 ? nullptr : options.get(),
                                     bytes_.below(2) == 0 ? nullptr : chosen.get()),
               "annulus_warm_work_add");
    }
  }
}

void Program::warm() {
  auto* const work = pick<annulus_warm_work>(Kind::kWarmWork);
  const std::string folder = kernel_folder();
  static constexpr const char* kDevices[] = {
      "sim:sm_80", "h100,sim:sm_90a", "a100", "nothing", "sim:", ",", "", nullptr};
  // The struct has its full size, because an older caller's struct has no flag.
  annulus_warm_options options = ANNULUS_WARM_OPTIONS_INIT;
  options.folder = bytes_.below(8) == 0 ? "relative" : folder.c_str();
  options.devices = kDevices[bytes_.below(8)];
  options.tuned_path = path();
  options.threads = bytes_.between(-1, 2);
  options.cancel = &kCancel;
  options.progress = [](void*, const annulus_warm_progress* progress) {
    if (progress->last == nullptr) wrong("progress without a text");
  };
  Sized<annulus_warm_result> result(ANNULUS_WARM_RESULT_INIT, bytes_);
  if (!may_launch()) return;
  if (returned(annulus_warm_work_run(work, &options, result.get()), "annulus_warm_work_run") &&
      result->compiled != 0) {
    wrong("a cancelled call compiled {} kernels", result->compiled);
  }
}

void Program::call_kernels() {
  annulus_text* text = nullptr;
  switch (bytes_.below(9)) {
    case 0: {
      auto described = problem(false);
      auto options = plan_options();
      return made(annulus_shape_line(described.get(),
                                     bytes_.below(2) == 0 ? nullptr : options.get(), &text),
                  text, Kind::kText, "annulus_shape_line");
    }
    case 1:
      return made(annulus_gpu_list(&text), text, Kind::kText, "annulus_gpu_list");
    case 2: {
      annulus_warm_work* work = nullptr;
      return made(annulus_warm_work_create(&work), work, Kind::kWarmWork,
                  "annulus_warm_work_create");
    }
    case 3:
      return add_warm_work();
    case 4:
      return warm();
    case 5: {
      Sized<annulus_warm_failure> failure(ANNULUS_WARM_FAILURE_INIT, bytes_);
      auto* const work = pick<annulus_warm_work>(Kind::kWarmWork);
      returned(annulus_warm_work_get_failure(work, count(4), failure.get()),
               "annulus_warm_work_get_failure");
      return;
    }
    case 6: {
      const std::string folder = kernel_folder();
      Sized<annulus_prune_options> options(ANNULUS_PRUNE_OPTIONS_INIT, bytes_);
      options->folder = folder.c_str();
      options->older_than_seconds = static_cast<double>(bytes_.between(-1, 8));
      options->max_bytes = bytes_.number();
      options->useless = tiny(1), options->dry_run = tiny(1);
      Sized<annulus_prune_result> result(ANNULUS_PRUNE_RESULT_INIT, bytes_);
      return made(annulus_kernels_prune(options.get(), result.get(), &text), text, Kind::kText,
                  "annulus_kernels_prune");
    }
    case 7: {
      const std::string folder = kernel_folder();
      Sized<annulus_verify_result> result(ANNULUS_VERIFY_RESULT_INIT, bytes_);
      return made(annulus_kernels_verify(folder.c_str(), tiny(2), result.get(), &text), text,
                  Kind::kText, "annulus_kernels_verify");
    }
    default:
      return give_back(Kind::kWarmWork);
  }
}

}  // namespace annulus::fuzz
