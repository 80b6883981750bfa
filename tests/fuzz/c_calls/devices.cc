// Calls about devices, with their counters, traces, metrics and caches, and about the installation.

#include <string>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::call_device() {
  annulus_device* device = pick<annulus_device>(Kind::kDevice);
  switch (bytes_.below(9)) {
    case 0: {
      Sized<annulus_device_info> info(ANNULUS_DEVICE_INFO_INIT, bytes_);
      returned(annulus_device_get_info(device, info.get()), "annulus_device_get_info");
      return;
    }
    case 1: {
      Sized<annulus_memory_statistics> to(ANNULUS_MEMORY_STATISTICS_INIT, bytes_);
      returned(annulus_device_memory_statistics(device, to.get()),
               "annulus_device_memory_statistics");
      return;
    }
    case 2: {
      void* memory = nullptr;
      const auto size =
          static_cast<std::size_t>(bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte());
      if (!returned(annulus_device_allocate(device, size, &memory), "annulus_device_allocate"))
        return;
      char data[256] = {};
      if (memory != nullptr && size <= sizeof data) {
        returned(annulus_device_copy_to_device(device, memory, data, size),
                 "annulus_device_copy_to_device");
        returned(annulus_device_copy_to_host(device, data, memory, size),
                 "annulus_device_copy_to_host");
      }
      if (!returned(annulus_device_release(device, memory), "annulus_device_release"))
        wrong("memory is not taken back");
      if (memory != nullptr && annulus_device_release(device, memory) == ANNULUS_OK)
        wrong("memory is taken back twice");
      return;
    }
    case 3: {
      std::size_t given = 0;
      returned(annulus_device_trim(device, static_cast<std::size_t>(bytes_.number()), &given),
               "annulus_device_trim");
      return;
    }
    case 4: {
      annulus_counter counters[8];
      std::size_t count = 0;
      returned(annulus_device_get_counters(device, static_cast<std::int32_t>(small(1)), counters,
                                           static_cast<std::size_t>(bytes_.below(9)), &count),
               "annulus_device_get_counters");
      return;
    }
    case 5: {
      void* entry = nullptr;
      returned(annulus_device_driver_entry(device, bytes_.below(2) == 0 ? "cuInit" : "cuNothing",
                                           &entry),
               "annulus_device_driver_entry");
      return;
    }
    case 6: {
      Sized<annulus_simulation> simulation(ANNULUS_SIMULATION_INIT, bytes_);
      simulation->threads = bytes_.below(2) == 0 ? 1 : bytes_.number();
      if (simulation->threads != 1 && simulation->threads >= 0 && simulation->threads <= 1024)
        simulation->threads = 1;
      returned(annulus_device_set_simulation(device, simulation.get()),
               "annulus_device_set_simulation");
      return;
    }
    case 7: {
      Sized<annulus_device_options> options(ANNULUS_DEVICE_OPTIONS_INIT, bytes_);
      static constexpr const char* kNames[] = {"sim:sm_1", "cuda:77", "sim:sm_80:9", "nothing",
                                               "sim:"};
      options->name = kNames[bytes_.below(5)];
      annulus_device* opened = nullptr;
      return made(annulus_device_open(options.get(), &opened), opened, Kind::kDevice,
                  "annulus_device_open");
    }
    default:
      returned(annulus_device_synchronize(device), "annulus_device_synchronize");
  }
}

void Program::call_metrics() {
  annulus_text* text = nullptr;
  switch (bytes_.below(8)) {
    case 0: {
      Sized<annulus_metrics> metrics(ANNULUS_METRICS_INIT, bytes_);
      returned(annulus_device_metrics(pick<annulus_device>(Kind::kDevice), metrics.get()),
               "annulus_device_metrics");
      return;
    }
    case 1: {
      Sized<annulus_metrics> metrics(ANNULUS_METRICS_INIT, bytes_);
      metrics->plans = bytes_.number();
      static constexpr const char* kLabels[] = {nullptr, "", "device=\"0\"", "\n"};
      return made(annulus_metrics_text(metrics.get(), kLabels[bytes_.below(4)], &text), text,
                  Kind::kText, "annulus_metrics_text");
    }
    case 2: {
      Sized<annulus_run_times> times(ANNULUS_RUN_TIMES_INIT, bytes_);
      returned(annulus_plan_times(pick<annulus_plan>(Kind::kPlan), times.get()),
               "annulus_plan_times");
      return;
    }
    case 3: {
      std::int64_t spans = bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte();
      // The caller allocates memory for all spans.
      if (spans > 256 && spans <= 1 << 24) spans = 256;
      if (spans == 0) spans = 1;
      traced_ = returned(annulus_trace_start(spans), "annulus_trace_start") || traced_;
      return;
    }
    case 4:
      returned(annulus_trace_stop(), "annulus_trace_stop");
      return;
    case 5: {
      Sized<annulus_trace_state> state(ANNULUS_TRACE_STATE_INIT, bytes_);
      returned(annulus_trace_read_state(state.get()), "annulus_trace_read_state");
      return;
    }
    case 6:
      return made(annulus_trace_json(&text), text, Kind::kText, "annulus_trace_json");
    default:
      returned(annulus_trace_write(path()), "annulus_trace_write");
  }
}

void Program::call_rest() {
  switch (bytes_.below(12)) {
    case 0: {
      annulus_installation* made_now = nullptr;
      if (examined_) return;
      examined_ = true;
      const std::string folders[] = {"", setting().folder + "/kernels", "/dev/null/kernels"};
      return made(annulus_installation_examine(folders[bytes_.below(3)].c_str(), &made_now),
                  made_now, Kind::kInstallation, "annulus_installation_examine");
    }
    case 1: {
      Sized<annulus_installation_info> info(ANNULUS_INSTALLATION_INFO_INIT, bytes_);
      returned(
          annulus_installation_get(pick<annulus_installation>(Kind::kInstallation), info.get()),
          "annulus_installation_get");
      return;
    }
    case 2: {
      Sized<annulus_library_report> report(ANNULUS_LIBRARY_REPORT_INIT, bytes_);
      auto* const of = pick<annulus_installation>(Kind::kInstallation);
      returned(annulus_installation_get_library(of, tiny(4), report.get()),
               "annulus_installation_get_library");
      return;
    }
    case 3: {
      Sized<annulus_listed_device> listed(ANNULUS_LISTED_DEVICE_INIT, bytes_);
      auto* const of = pick<annulus_installation>(Kind::kInstallation);
      returned(annulus_installation_get_device(of, count(3), listed.get()),
               "annulus_installation_get_device");
      return;
    }
    case 4: {
      const int status = tiny(14);
      if (annulus_status_text(status)[0] == '\0') wrong("status {} has no text", status);
      if (annulus_version() != ANNULUS_VERSION || annulus_version_text()[0] == '\0')
        wrong("version {}", annulus_version());
      return;
    }
    case 5: {
      const auto index = static_cast<std::size_t>(small(12));
      std::int64_t dim_qk = 0, dim_v = 0;
      if (returned(annulus_dims_get(index, &dim_qk, bytes_.below(16) == 0 ? nullptr : &dim_v),
                   "annulus_dims_get") != (index < annulus_dims_count()) &&
          index >= annulus_dims_count()) {
        wrong("head dims {} of {}", index, annulus_dims_count());
      }
      return;
    }
    case 6: {
      Sized<annulus_preset> preset(ANNULUS_PRESET_INIT, bytes_);
      const auto index = static_cast<std::size_t>(small(20));
      if (returned(annulus_preset_get(index, preset.get()), "annulus_preset_get") &&
          index >= annulus_preset_count()) {
        wrong("preset {} of {}", index, annulus_preset_count());
      }
      return;
    }
    case 7: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      Sized<annulus_cache_counters> host(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
      Sized<annulus_cache_counters> there(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
      returned(annulus_device_get_list_counters(device, bytes_.below(4) == 0 ? nullptr : host.get(),
                                                bytes_.below(4) == 0 ? nullptr : there.get()),
               "annulus_device_get_list_counters");
      return;
    }
    case 8: {
      annulus_layout_cache* cache = pick<annulus_layout_cache>(Kind::kCache);
      if (bytes_.below(2) == 0) {
        returned(annulus_layout_cache_clear(cache), "annulus_layout_cache_clear");
        return;
      }
      Sized<annulus_cache_counters> counters(ANNULUS_CACHE_COUNTERS_INIT, bytes_);
      returned(annulus_layout_cache_get_counters(cache, counters.get()),
               "annulus_layout_cache_get_counters");
      return;
    }
    case 9: {
      auto sized = sizes();
      Sized<annulus_layout_options> options(ANNULUS_LAYOUT_OPTIONS_INIT, bytes_);
      options->threads = 1;
      options->max_work = 1'000'000;
      options->cancel = flag();
      Sized<annulus_layout_statistics> statistics(ANNULUS_LAYOUT_STATISTICS_INIT, bytes_);
      const char* const text = pattern();
      returned(
          annulus_pattern_statistics(text, nullptr, sized.get(), options.get(), statistics.get()),
          "annulus_pattern_statistics");
      return;
    }
    case 10: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(true);
      auto options = plan_options();
      returned(annulus_plan_prefetch(device, described.get(), options.get()),
               "annulus_plan_prefetch");
      return;
    }
    default:  // limits the allocations that the allocator of the second device permits
      setting().allocator.left = bytes_.below(4);
      setting().allocator.by_null = bytes_.below(2) == 0;
      if (bytes_.below(2) == 0) annulus_device_trim(setting().limited, 0, nullptr);
  }
}

}  // namespace annulus::fuzz
