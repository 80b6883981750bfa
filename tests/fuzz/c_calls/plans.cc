// Calls on problems, plans and references.

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::call_plan() {
  annulus_plan* plan = nullptr;
  switch (bytes_.below(16)) {
    case 0:
    case 1:
    case 2: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(true);
      auto options = plan_options();
      return made(annulus_plan_create(device, described.get(), options.get(), &plan), plan,
                  Kind::kPlan, "annulus_plan_create");
    }
    case 3: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(false);
      auto options = plan_options();
      Sized<annulus_memory_needed> needed(ANNULUS_MEMORY_NEEDED_INIT, bytes_);
      returned(annulus_plan_memory_needed(device, described.get(), options.get(), needed.get()),
               "annulus_plan_memory_needed");
      return;
    }
    case 4: {
      Sized<annulus_plan_info> info(ANNULUS_PLAN_INFO_INIT, bytes_);
      returned(annulus_plan_get_info(pick<annulus_plan>(Kind::kPlan), info.get()),
               "annulus_plan_get_info");
      return;
    }
    case 5: {
      std::size_t size = 0;
      returned(annulus_plan_workspace_bytes(pick<annulus_plan>(Kind::kPlan), &size),
               "annulus_plan_workspace_bytes");
      return;
    }
    case 6:
    case 7: {
      plan = pick<annulus_plan>(Kind::kPlan);
      auto given = operands();
      if (may_launch()) {
        returned(annulus_plan_run(plan, nullptr, given.get(), scratch()), "annulus_plan_run");
      }
      return;
    }
    case 8: {
      annulus_bound* bound = nullptr;
      plan = pick<annulus_plan>(Kind::kPlan);
      auto given = operands();
      return made(annulus_plan_bind(plan, given.get(), scratch(), &bound), bound, Kind::kBound,
                  "annulus_plan_bind");
    }
    case 9:
      if (!may_launch()) return;
      returned(annulus_bound_run(pick<annulus_bound>(Kind::kBound), nullptr), "annulus_bound_run");
      return;
    case 10: {
      Sized<annulus_prediction> prediction(ANNULUS_PREDICTION_INIT, bytes_);
      returned(annulus_plan_predict(pick<annulus_plan>(Kind::kPlan), prediction.get()),
               "annulus_plan_predict");
      return;
    }
    case 11: {
      auto described = problem(false);
      Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
      limit->max_work = 100'000;
      double density = 0;
      returned(annulus_problem_density(described.get(), limit.get(), &density),
               "annulus_problem_density");
      return;
    }
    case 12: {
      auto described = problem(false);
      auto given = operands();
      returned(
          annulus_problem_validate(described.get(), bytes_.below(2) == 0 ? nullptr : given.get()),
          "annulus_problem_validate");
      return;
    }
    case 13:
      return create_ring();
    case 14: {
      alignas(16) static std::uint16_t zeros[64 * 64 * 2] = {};
      auto described = problem(true);
      Sized<annulus_host_inputs> inputs(ANNULUS_HOST_INPUTS_INIT, bytes_);
      inputs->q = zeros, inputs->k = zeros;
      inputs->v = bytes_.below(8) == 0 ? nullptr : zeros;
      inputs->q_strides = inputs->k_strides = inputs->v_strides = {64 * 64, 64 * 64, 64};
      Sized<annulus_reference_options> options(ANNULUS_REFERENCE_OPTIONS_INIT, bytes_);
      options->threads = 1;
      options->tile_rows = small(64);
      annulus_reference* reference = nullptr;
      return made(
          annulus_reference_create(described.get(), inputs.get(), options.get(), &reference),
          reference, Kind::kReference, "annulus_reference_create");
    }
    default: {
      Sized<annulus_reference_rows> rows(ANNULUS_REFERENCE_ROWS_INIT, bytes_);
      returned(annulus_reference_get(pick<annulus_reference>(Kind::kReference), rows.get()),
               "annulus_reference_get");
    }
  }
}

}  // namespace annulus::fuzz
