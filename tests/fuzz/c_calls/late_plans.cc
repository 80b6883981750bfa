// Calls on plans that do not wait for their kernel, on tasks of the library, and on tuning in the
// background. Nothing is measured, because the caller never permits a measurement.

#include <limits>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::create_late_plan() {
  auto* const device = pick<annulus_device>(Kind::kDevice);
  auto described = problem(true);
  auto options = plan_options();
  // No other call needs these kernels, so they are rarely in memory.
  static constexpr const char* kConfigs[] = {"mma m64 n64 w4 s3", "mma m64 n32 w4 s2",
                                             "mma m128 n64 w4 s2"};
  static constexpr const char* kPatterns[] = {"causal", "dense", "causal & window(5, 3)"};
  options->config = kConfigs[bytes_.below(3)];
  described->pattern = kPatterns[bytes_.below(3)];
  options->block_rows = options->block_columns = 0;
  options->no_wait = bytes_.below(16) == 0 ? 2 : 1;
  options->swap = tiny(3);
  options->follow_tuning = bytes_.below(4) == 0;
  options->on_ready = [](void*, std::int32_t state, const char* problem) {
    if (state < ANNULUS_PLAN_READY || state > ANNULUS_PLAN_GENERAL) wrong("state {}", state);
    if ((state == ANNULUS_PLAN_GENERAL) != (problem[0] != '\0')) {
      wrong("a plan of state {} has the problem '{}'", state, problem);
    }
  };
  if (!may_launch()) return;
  setting().tasks.refuse(bytes_.below(8) == 0);
  annulus_plan* plan = nullptr;
  made(annulus_plan_create(device, described.get(), options.get(), &plan), plan, Kind::kPlan,
       "annulus_plan_create");
  keep_tasks();
}

void Program::keep_tasks() {
  for (annulus_task* task : setting().tasks.take()) held_.push_back({task, Kind::kTask, true});
}

void Program::run_task() {
  // A task of a tuning ends only when the tuning ends.
  for (const Held& held : held_) {
    if (held.live && held.kind == Kind::kBackgroundTuning) {
      annulus_background_tuning_cancel(static_cast<annulus_background_tuning*>(held.handle));
    }
  }
  auto* const task = pick<annulus_task>(Kind::kTask);
  if (!returned(annulus_task_run(task), "annulus_task_run")) return;
  for (Held& held : held_) {
    if (held.handle == task && held.kind == Kind::kTask) held.live = false;
  }
  keep_tasks();
}

void Program::call_late_plan() {
  switch (bytes_.below(10)) {
    case 0:
    case 1:
      return create_late_plan();
    case 2: {
      std::int32_t state = -1;
      if (returned(annulus_plan_state(pick<annulus_plan>(Kind::kPlan), &state),
                   "annulus_plan_state") &&
          (state < ANNULUS_PLAN_READY || state > ANNULUS_PLAN_GENERAL)) {
        wrong("a plan has the state {}", state);
      }
      return;
    }
    case 3: {
      std::int32_t state = -1;
      auto* const plan = pick<annulus_plan>(Kind::kPlan);
      static constexpr double kSeconds[] = {0, 0.001, std::numeric_limits<double>::quiet_NaN()};
      returned(annulus_plan_wait(plan, kSeconds[bytes_.below(3)], &state), "annulus_plan_wait");
      return;
    }
    case 4:
      returned(annulus_plan_swap(pick<annulus_plan>(Kind::kPlan)), "annulus_plan_swap");
      return;
    case 5: {
      std::int32_t can = -1;
      auto* const plan = pick<annulus_plan>(Kind::kPlan);
      if (returned(annulus_plan_can_swap(plan, &can), "annulus_plan_can_swap") && can == 1 &&
          annulus_plan_swap(plan) != ANNULUS_OK) {
        wrong("a plan that can swap does not: {}", annulus_last_error());
      }
      return;
    }
    case 6:
    case 7:
      return run_task();
    case 8:
      return give_back(Kind::kTask);
    default:
      returned(annulus_device_flush_shape_log(pick<annulus_device>(Kind::kDevice)),
               "annulus_device_flush_shape_log");
  }
}

annulus_background_tuning_options Program::background_options() {
  // The struct has its full size, because with an older caller's struct measurements would begin.
  annulus_background_tuning_options made = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
  made.may_measure = [](void*) -> std::int32_t { return 0; };
  made.measured = [](void*) { wrong("a measurement was made"); };
  made.progress = [](void*, const annulus_tune_progress*) { wrong("a candidate was run"); };
  made.execute = TaskQueue::keep;
  made.user = &setting().tasks;
  made.ask_again_seconds = 0.001;
  return made;
}

void Program::create_background_tuning() {
  auto* const device = pick<annulus_device>(Kind::kDevice);
  auto first = problem(true);
  auto second = problem(true);
  if (bytes_.below(4) == 0) second->pattern = pattern();
  const annulus_problem* const problems[] = {first.get(),
                                             bytes_.below(8) == 0 ? nullptr : second.get()};
  Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
  const annulus_batch_problem* const batches[] = {bytes_.below(8) == 0 ? nullptr : batch.get()};
  annulus_background_tuning_options options = background_options();
  options.problems = bytes_.below(8) == 0 ? nullptr : problems;
  options.problem_count = count(3);
  options.batches = bytes_.below(8) == 0 ? nullptr : batches;
  options.batch_count = count(2);
  if (bytes_.below(2) == 0) options.execute = nullptr;
  if (bytes_.below(8) == 0) options.ask_again_seconds = static_cast<double>(bytes_.number());
  options.time_limit_seconds = static_cast<double>(bytes_.between(-1, 8));
  if (bytes_.below(8) == 0) options.threads = -1;
  if (!may_launch()) return;
  annulus_background_tuning* tuning = nullptr;
  made(annulus_background_tuning_create(device, &options, &tuning), tuning, Kind::kBackgroundTuning,
       "annulus_background_tuning_create");
  keep_tasks();
}

void Program::call_background_tuning() {
  const auto one = [&] { return pick<annulus_background_tuning>(Kind::kBackgroundTuning); };
  switch (bytes_.below(8)) {
    case 0:
    case 1:
      return create_background_tuning();
    case 2:
      returned(annulus_background_tuning_pause(one()), "annulus_background_tuning_pause");
      return;
    case 3:
      returned(annulus_background_tuning_resume(one()), "annulus_background_tuning_resume");
      return;
    case 4: {
      std::int32_t done = -1;
      annulus_background_tuning* const tuning = one();
      const double seconds =
          bytes_.below(8) == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.001;
      returned(
          annulus_background_tuning_wait(tuning, seconds, bytes_.below(4) == 0 ? nullptr : &done),
          "annulus_background_tuning_wait");
      return;
    }
    case 5:
      returned(annulus_background_tuning_cancel(one()), "annulus_background_tuning_cancel");
      return;
    case 6: {
      Sized<annulus_background_tuning_status> status(ANNULUS_BACKGROUND_TUNING_STATUS_INIT, bytes_);
      if (returned(annulus_background_tuning_get_status(one(), status.get()),
                   "annulus_background_tuning_get_status") &&
          status->measurements != 0) {
        wrong("{} measurements began", status->measurements);
      }
      return;
    }
    default:
      return give_back(Kind::kBackgroundTuning);
  }
}

}  // namespace annulus::fuzz
