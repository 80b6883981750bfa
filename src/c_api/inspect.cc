// The C interface of lists, predictions, counters and simulations. Each function converts its
// arguments and calls annulus/device.h.
#include "annulus/c.h"
#include "annulus/c_tools.h"

#include "attention/cost/pipe_model.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

constexpr StructName kPrediction = {"annulus_prediction", "ANNULUS_PREDICTION_INIT"};
constexpr StructName kCacheCounters = {"annulus_cache_counters", "ANNULUS_CACHE_COUNTERS_INIT"};
constexpr StructName kSimulation = {"annulus_simulation", "ANNULUS_SIMULATION_INIT"};

// The literal with the same text as the limit of a prediction. It is a literal so that a C caller
// may keep it.
const char* literal_of(const std::string& limit) {
  for (int i = 0; i <= static_cast<int>(attention::Limit::kNothing); ++i) {
    const char* name = attention::to_string(static_cast<attention::Limit>(i));
    if (limit == name) return name;
  }
  return attention::to_string(attention::Limit::kNothing);
}

}  // namespace

void write_counters(annulus_cache_counters* to, const LayoutCacheCounters& counters) {
  annulus_cache_counters c = ANNULUS_CACHE_COUNTERS_INIT;
  c.hits = counters.hits;
  c.waits = counters.waits;
  c.misses = counters.misses;
  c.failures = counters.failures;
  c.evictions = counters.evictions;
  c.too_large = counters.too_large;
  c.bytes = counters.bytes;
  c.entries = counters.entries;
  write_struct(kCacheCounters, to, c);
}

}  // namespace annulus::c_api

extern "C" {

size_t annulus_dims_count(void) {
  try {
    return supported_dims().size();
  } catch (...) {
    return 0;  // there is no memory for the list
  }
}

annulus_status annulus_dims_get(size_t index, int64_t* dim_qk, int64_t* dim_v) {
  return guarded([&] {
    const std::vector<HeadDims> all = supported_dims();
    if (index >= all.size()) {
      base::fail(ErrorCode::kInvalidArgument, "head dims {} of {}", index, all.size());
    }
    check_pointer("dim_qk (where the number goes)", dim_qk);
    check_pointer("dim_v (where the number goes)", dim_v);
    *dim_qk = all[index].qk;
    *dim_v = all[index].v;
  });
}

annulus_status annulus_problem_validate(const annulus_problem* problem,
                                        const annulus_operands* operands) {
  return guarded([&] {
    const Problem made = problem_of(problem);
    validate(made);
    if (operands != nullptr) validate(made, operands_of(operands));
  });
}

annulus_status annulus_problem_density(const annulus_problem* problem,
                                       const annulus_work_limit* limit, double* density) {
  return guarded([&] {
    const Problem made = problem_of(problem);
    check_pointer("density (where the number goes)", density);
    *density = pair_density(made, work_limit_of(limit)).value;
  });
}

annulus_status annulus_plan_predict(annulus_plan* plan, annulus_prediction* to) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    const PlanPrediction made = pin->plan.predict();
    annulus_prediction c = ANNULUS_PREDICTION_INIT;
    c.micros = made.predicted_micros;
    c.min_micros = made.min_micros;
    c.max_micros = made.max_micros;
    c.limit = literal_of(made.predicted_limit);
    for (const auto& [name, busy] : made.predicted_busy) {
      if (c.pipe_count == ANNULUS_MAX_PIPES) break;
      c.pipes[c.pipe_count++] = {literal_of(name), busy};
    }
    write_struct(kPrediction, to, c);
  });
}

annulus_status annulus_device_get_counters(annulus_device* device, int32_t clear,
                                           annulus_counter* counters, size_t capacity,
                                           size_t* count) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("count (where the number goes)", count);
    if (capacity > 0) check_pointer("counters", counters);
    const Counters found = pin->device.counters(truth("clear", clear));
    const std::lock_guard lock(pin->mutex);
    for (std::size_t i = 0; i < found.size() && i < capacity; ++i) {
      counters[i] = {pin->names.insert(found[i].first).first->c_str(), found[i].second};
    }
    *count = found.size();
  });
}

annulus_status annulus_device_get_list_counters(annulus_device* device,
                                                annulus_cache_counters* on_host,
                                                annulus_cache_counters* on_device) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    const ListCounters counters = pin->device.list_counters();
    if (on_host != nullptr) check_output(kCacheCounters, on_host);
    if (on_device != nullptr) write_counters(on_device, counters.device);
    if (on_host != nullptr) write_counters(on_host, counters.host);
  });
}

annulus_status annulus_device_set_simulation(annulus_device* device,
                                             const annulus_simulation* given) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    const annulus_simulation defaults = ANNULUS_SIMULATION_INIT;
    const annulus_simulation c =
        given == nullptr ? defaults : read_struct(kSimulation, given, defaults);
    pin->device.set_simulation(simulation_of(c.checked, c.seed, c.threads));
  });
}

}  // extern "C"
