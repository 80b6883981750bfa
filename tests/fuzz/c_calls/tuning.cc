// Calls that tune, and calls on tuned results and packs of them.

#include <string>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::tune_batch(annulus_device* device, const annulus_tune_options& options) {
  Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
  batch->most.requests = small(4);
  batch->page_rows = small(64);
  annulus_step_requests step[2] = {};
  for (annulus_step_requests& each : step) each = {small(4), small(64), small(64)};
  annulus_tuning* tunings[ANNULUS_REQUEST_CLASSES] = {};
  std::size_t count = 0;
  const std::size_t steps = bytes_.below(3), room = bytes_.below(3);
  const annulus_status status = annulus_tuning_create_batch(device, batch.get(), step, steps,
                                                            &options, tunings, room, &count);
  if (!returned(status, "annulus_tuning_create_batch") && (count != 0 || tunings[0] != nullptr)) {
    wrong("annulus_tuning_create_batch failed and made a handle");
  }
  if (count > room)
    wrong("annulus_tuning_create_batch made {} handles, with room for {}", count, room);
  for (std::size_t i = 0; i < count; ++i) {
    made(status, tunings[i], Kind::kTuning, "annulus_tuning_create_batch");
  }
}

void Program::call_tuning() {
  switch (bytes_.below(7)) {
    case 0:
    case 1: {  // runs no candidate, because that takes seconds
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(true);
      if (bytes_.below(4) == 0) described->pattern = pattern();
      annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
      if (bytes_.below(2) == 0) {
        options.dry_run = 1;
      } else {
        options.cancel = &kCancel;
      }
      options.time_limit_seconds = static_cast<double>(bytes_.between(-1, 8));
      options.seed = bytes_.byte();
      options.force = tiny(1), options.exhaustive = tiny(1), options.cold_cache = tiny(1);
      options.progress = [](void*, const annulus_tune_progress*) { wrong("a candidate was run"); };
      if (!may_launch()) return;
      if (bytes_.below(4) == 0) return tune_batch(device, options);
      annulus_tuning* tuning = nullptr;
      if (tiny(1) == 1) {
        auto chosen = selection(static_cast<std::int32_t>(bytes_.between(0, 4)));
        options.selection = chosen.get();
        return made(annulus_tuning_create(device, described.get(), &options, &tuning), tuning,
                    Kind::kTuning, "annulus_tuning_create with a selection");
      }
      return made(annulus_tuning_create(device, described.get(), &options, &tuning), tuning,
                  Kind::kTuning, "annulus_tuning_create");
    }
    case 2: {
      Sized<annulus_tune_result> result(ANNULUS_TUNE_RESULT_INIT, bytes_);
      returned(annulus_tuning_get(pick<annulus_tuning>(Kind::kTuning), result.get()),
               "annulus_tuning_get");
      return;
    }
    case 3: {
      Sized<annulus_tune_trial> trial(ANNULUS_TUNE_TRIAL_INIT, bytes_);
      annulus_tuning* tuning = pick<annulus_tuning>(Kind::kTuning);
      returned(annulus_tuning_get_trial(tuning, static_cast<std::size_t>(small(80)), trial.get()),
               "annulus_tuning_get_trial");
      return;
    }
    case 4: {
      const std::string paths[] = {"", setting().folder, "/nowhere:" + setting().folder, ":",
                                   setting().folder + "/damaged.tuned"};
      annulus_tuned_list* list = nullptr;
      return made(annulus_tuned_list_read(paths[bytes_.below(5)].c_str(), &list), list,
                  Kind::kTuned, "annulus_tuned_list_read");
    }
    case 5: {
      Sized<annulus_tuned_info> info(ANNULUS_TUNED_INFO_INIT, bytes_);
      returned(annulus_tuned_list_get(pick<annulus_tuned_list>(Kind::kTuned), info.get()),
               "annulus_tuned_list_get");
      return;
    }
    default: {
      if (bytes_.below(2) == 0) return call_packs();
      Sized<annulus_tuned_entry> entry(ANNULUS_TUNED_ENTRY_INIT, bytes_);
      annulus_tuned_list* list = pick<annulus_tuned_list>(Kind::kTuned);
      returned(annulus_tuned_list_get_entry(list, static_cast<std::size_t>(small(2)), entry.get()),
               "annulus_tuned_list_get_entry");
    }
  }
}

// Packs of tuned results. Some of those in the folder are damaged. Nothing is measured.
void Program::call_packs() {
  const std::string& folder = setting().folder;
  const char* packs[3] = {path(), path(), path()};
  const std::size_t count = static_cast<std::size_t>(bytes_.below(4));
  const char* const* given = bytes_.below(8) == 0 ? nullptr : packs;
  Sized<annulus_tuned_filter> filter(ANNULUS_TUNED_FILTER_INIT, bytes_);
  filter.value.name = bytes_.below(3) == 0 ? "mma" : nullptr;
  filter.value.measured_only = tiny(1), filter.value.complete_only = tiny(1);
  annulus_tuned_report* report = nullptr;
  const auto given_back = [&](annulus_status status, const char* function) {
    made(status, report, Kind::kTunedReport, function);
  };
  switch (bytes_.below(9)) {
    case 0:
      return given_back(annulus_tuned_export(path(), filter.get(), folder.c_str(), &report),
                        "annulus_tuned_export");
    case 1:
      return given_back(annulus_tuned_import(given, given == nullptr ? 0 : count, filter.get(),
                                             (folder + "/tuned").c_str(), &report),
                        "annulus_tuned_import");
    case 2:
      return given_back(annulus_tuned_merge(given, given == nullptr ? 0 : count, path(), &report),
                        "annulus_tuned_merge");
    case 3:
      return given_back(annulus_tuned_diff(path(), path(), &report), "annulus_tuned_diff");
    case 4: {
      annulus_device* device = pick<annulus_device>(Kind::kDevice);
      Sized<annulus_tuned_verify_options> options(ANNULUS_TUNED_VERIFY_OPTIONS_INIT, bytes_);
      options.value.packs = given;
      options.value.count = given == nullptr ? 0 : count;
      options.value.cancel = &kCancel;
      options.value.measure = bytes_.below(3) - 1;
      if (!may_launch()) return;
      return given_back(annulus_tuned_verify(device, options.get(), &report),
                        "annulus_tuned_verify");
    }
    case 5:
      return given_back(annulus_tuned_prune(folder.c_str(), path(), 1, &report),
                        "annulus_tuned_prune");
    case 6:
      return given_back(annulus_tuned_remove(path(), folder.c_str(), 1, &report),
                        "annulus_tuned_remove");
    case 7: {
      Sized<annulus_tuned_report_info> info(ANNULUS_TUNED_REPORT_INFO_INIT, bytes_);
      returned(annulus_tuned_report_get(pick<annulus_tuned_report>(Kind::kTunedReport), info.get()),
               "annulus_tuned_report_get");
      return;
    }
    default: {
      Sized<annulus_tuned_note> note(ANNULUS_TUNED_NOTE_INIT, bytes_);
      Sized<annulus_tuned_entry> entry(ANNULUS_TUNED_ENTRY_INIT, bytes_);
      returned(annulus_tuned_report_get_note(pick<annulus_tuned_report>(Kind::kTunedReport),
                                             static_cast<std::size_t>(small(2)), note.get(),
                                             entry.get()),
               "annulus_tuned_report_get_note");
    }
  }
}

void Program::call_tuned_reports() {
  annulus_tuned_report* report = nullptr;
  switch (bytes_.below(8)) {
    case 0: {
      const int verdict = tiny(14);
      if (annulus_tuned_verdict_text(verdict)[0] == '\0') wrong("verdict {} has no text", verdict);
      return;
    }
    case 1:
    case 2: {
      auto* const device = pick<annulus_device>(Kind::kDevice);
      auto described = problem(bytes_.below(2) == 0);
      if (!may_launch()) return;
      if (bytes_.below(2) == 0) {
        return made(annulus_tuned_why(device, described.get(), &report), report, Kind::kTunedReport,
                    "annulus_tuned_why");
      }
      auto chosen = selection(static_cast<std::int32_t>(bytes_.between(0, 4)));
      return made(annulus_tuned_why_selected(device, described.get(), chosen.get(), &report),
                  report, Kind::kTunedReport, "annulus_tuned_why_selected");
    }
    case 3: {
      auto* const device = pick<annulus_device>(Kind::kDevice);
      Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
      batch->most.requests = small(4), batch->page_rows = small(64);
      Sized<annulus_batch_options> options(ANNULUS_BATCH_OPTIONS_INIT, bytes_);
      if (!may_launch()) return;
      return made(annulus_tuned_why_batch(device, batch.get(),
                                          bytes_.below(2) == 0 ? nullptr : options.get(), &report),
                  report, Kind::kTunedReport, "annulus_tuned_why_batch");
    }
    case 4: {
      annulus_tuning* tuning = nullptr;
      annulus_tune_callback progress = nullptr;
      if (bytes_.below(2) == 0) progress = [](void*, const annulus_tune_progress*) {};
      return made(annulus_tuning_replay(path(), progress, nullptr, &tuning), tuning, Kind::kTuning,
                  "annulus_tuning_replay");
    }
    case 5: {
      const char* const paths[2] = {path(), path()};
      const std::size_t paths_given = count(3);
      const char* const* const given = bytes_.below(8) == 0 ? nullptr : paths;
      annulus_tuning_report* page = nullptr;
      return made(annulus_tuning_report_make(given, paths_given, path(), &page), page,
                  Kind::kTuningReport, "annulus_tuning_report_make");
    }
    case 6: {
      Sized<annulus_tuning_report_info> info(ANNULUS_TUNING_REPORT_INFO_INIT, bytes_);
      returned(
          annulus_tuning_report_get(pick<annulus_tuning_report>(Kind::kTuningReport), info.get()),
          "annulus_tuning_report_get");
      return;
    }
    default:
      return give_back(Kind::kTuningReport);
  }
}

}  // namespace annulus::fuzz
