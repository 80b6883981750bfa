// The C interface of packs. Each function converts its arguments and calls annulus/tune.h.
#include "annulus/c_tools.h"

#include <atomic>
#include <utility>

#include "annulus/tune.h"
#include "api/verify_until.h"
#include "c_api/functions.h"
#include "c_api/problems.h"
#include "c_api/tuned_entry.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_TUNED_ADDED == static_cast<int>(TunedVerdict::kAdded));
static_assert(ANNULUS_TUNED_REPLACED == static_cast<int>(TunedVerdict::kReplaced));
static_assert(ANNULUS_TUNED_KEPT == static_cast<int>(TunedVerdict::kKept));
static_assert(ANNULUS_TUNED_FIRST_ONLY == static_cast<int>(TunedVerdict::kFirstOnly));
static_assert(ANNULUS_TUNED_SECOND_ONLY == static_cast<int>(TunedVerdict::kSecondOnly));
static_assert(ANNULUS_TUNED_DIFFERS == static_cast<int>(TunedVerdict::kDiffers));
static_assert(ANNULUS_TUNED_USED == static_cast<int>(TunedVerdict::kUsed));
static_assert(ANNULUS_TUNED_UNUSED == static_cast<int>(TunedVerdict::kUnused));
static_assert(ANNULUS_TUNED_HOLDS == static_cast<int>(TunedVerdict::kHolds));
static_assert(ANNULUS_TUNED_WEAKER == static_cast<int>(TunedVerdict::kWeaker));
static_assert(ANNULUS_TUNED_FAILS == static_cast<int>(TunedVerdict::kFails));
static_assert(ANNULUS_TUNED_NOT_MEASURED == static_cast<int>(TunedVerdict::kNotMeasured));
static_assert(ANNULUS_TUNED_REMOVED == static_cast<int>(TunedVerdict::kRemoved));

constexpr StructName kReportInfo = {"annulus_tuned_report_info", "ANNULUS_TUNED_REPORT_INFO_INIT"};
constexpr StructName kNote = {"annulus_tuned_note", "ANNULUS_TUNED_NOTE_INIT"};
constexpr StructName kFilter = {"annulus_tuned_filter", "ANNULUS_TUNED_FILTER_INIT"};
constexpr StructName kVerifyOptions = {"annulus_tuned_verify_options",
                                       "ANNULUS_TUNED_VERIFY_OPTIONS_INIT"};

struct ReportObject {
  explicit ReportObject(TunedReport made)
      : report(std::move(made)), left_out(lines(report.left_out)) {}
  TunedReport report;
  std::string left_out;  // one per line
};
HandleTable<ReportObject>& reports() {
  static auto* table = new HandleTable<ReportObject>("report of tuned results", 0xa7);
  return *table;
}
using ReportPin = HandleTable<ReportObject>::Pin;

void give_report(annulus_tuned_report** to, TunedReport report) {
  give(to, reports(), std::make_unique<ReportObject>(std::move(report)));
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

TunedFilter filter_of(const annulus_tuned_filter* given) {
  const annulus_tuned_filter defaults = ANNULUS_TUNED_FILTER_INIT;
  const annulus_tuned_filter c =
      given == nullptr ? defaults : read_struct(kFilter, given, defaults);
  TunedFilter filter;
  filter.name = text_of(c.name);
  filter.device = text_of(c.device);
  filter.measured_only = truth("measured_only", c.measured_only);
  filter.complete_only = truth("complete_only", c.complete_only);
  return filter;
}

std::vector<std::string> packs_of(const char* const* packs, std::size_t count) {
  std::vector<std::string> paths;
  if (count > 0) check_pointer("packs", packs);
  for (std::size_t i = 0; i < count; ++i) {
    check_pointer("a path of packs", packs[i]);
    paths.emplace_back(packs[i]);
  }
  return paths;
}

constexpr char kPlace[] = "report (where the handle goes)";

}  // namespace
}  // namespace annulus::c_api

extern "C" {

const char* annulus_tuned_verdict_text(int32_t verdict) {
  return to_string(static_cast<TunedVerdict>(verdict));
}

annulus_status annulus_tuned_report_destroy(annulus_tuned_report* report) {
  return guarded([&] { reports().erase(number(report)); });
}

annulus_status annulus_tuned_report_get(annulus_tuned_report* report,
                                        annulus_tuned_report_info* to) {
  return guarded([&] {
    const ReportPin pin(reports(), number(report));
    annulus_tuned_report_info c = ANNULUS_TUNED_REPORT_INFO_INIT;
    c.notes = pin->report.notes.size();
    c.left_out = pin->left_out.c_str();
    c.shape = pin->report.shape.c_str();
    c.config = pin->report.config.c_str();
    c.reason = pin->report.reason.c_str();
    write_struct(kReportInfo, to, c);
  });
}

annulus_status annulus_tuned_report_get_note(annulus_tuned_report* report, size_t index,
                                             annulus_tuned_note* to, annulus_tuned_entry* entry) {
  return guarded([&] {
    const ReportPin pin(reports(), number(report));
    const std::vector<TunedNote>& notes = pin->report.notes;
    if (index >= notes.size()) {
      base::fail(ErrorCode::kInvalidArgument, "note {} of {}", index, notes.size());
    }
    annulus_tuned_note c = ANNULUS_TUNED_NOTE_INIT;
    c.verdict = static_cast<std::int32_t>(notes[index].verdict);
    c.text = notes[index].text.c_str();
    if (to != nullptr) write_struct(kNote, to, c);
    if (entry != nullptr) write_struct(kTunedEntry, entry, to_c(notes[index].entry));
  });
}

annulus_status annulus_tuned_export(const char* pack, const annulus_tuned_filter* filter,
                                    const char* tuned_path, annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    check_pointer("pack", pack);
    give_report(report, export_tuned(pack, filter_of(filter), path_of(tuned_path)));
  });
}

annulus_status annulus_tuned_import(const char* const* packs, size_t count,
                                    const annulus_tuned_filter* filter, const char* tuned_path,
                                    annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    give_report(report,
                import_tuned(packs_of(packs, count), filter_of(filter), path_of(tuned_path)));
  });
}

annulus_status annulus_tuned_merge(const char* const* packs, size_t count, const char* to,
                                   annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    check_pointer("to", to);
    give_report(report, merge_tuned(packs_of(packs, count), to));
  });
}

annulus_status annulus_tuned_diff(const char* first, const char* second,
                                  annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    check_pointer("first", first);
    check_pointer("second", second);
    give_report(report, diff_tuned(first, second));
  });
}

annulus_status annulus_tuned_verify(annulus_device* device,
                                    const annulus_tuned_verify_options* given,
                                    annulus_tuned_report** report) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer(kPlace, report);
    const annulus_tuned_verify_options defaults = ANNULUS_TUNED_VERIFY_OPTIONS_INIT;
    const annulus_tuned_verify_options c =
        given == nullptr ? defaults : read_struct(kVerifyOptions, given, defaults);
    if (c.measure < 0 || c.measure > INT32_MAX) {
      base::fail(ErrorCode::kInvalidArgument, "measure is {}; give 0, for none, or more",
                 c.measure);
    }
    TunedVerifyOptions options;
    options.packs = packs_of(c.packs, c.packs == nullptr ? 0 : c.count);
    options.measure = static_cast<int>(c.measure);
    options.seed = c.seed;
    const std::function<bool()> cancelled = cancelled_by(c.cancel);
    give_report(report, verify_until(pin->device, options, cancelled));
  });
}

annulus_status annulus_tuned_prune(const char* tuned_path, const char* device_key, int32_t dry_run,
                                   annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    give_report(report,
                prune_tuned(path_of(tuned_path), path_of(device_key), truth("dry_run", dry_run)));
  });
}

annulus_status annulus_tuned_remove(const char* name, const char* tuned_path, int32_t dry_run,
                                    annulus_tuned_report** report) {
  return guarded([&] {
    check_pointer(kPlace, report);
    check_pointer("name", name);
    give_report(report, remove_tuned(name, path_of(tuned_path), truth("dry_run", dry_run)));
  });
}

annulus_status annulus_tuned_why(annulus_device* device, const annulus_problem* problem,
                                 annulus_tuned_report** report) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer(kPlace, report);
    give_report(report, why_tuned(pin->device, problem_of(problem)));
  });
}

annulus_status annulus_tuned_why_selected(annulus_device* device, const annulus_problem* problem,
                                          const annulus_selection* selection,
                                          annulus_tuned_report** report) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer(kPlace, report);
    const Problem read = problem_of(problem);
    give_report(report, why_tuned(pin->device, read, selection_of(selection)));
  });
}

annulus_status annulus_tuned_why_batch(annulus_device* device, const annulus_batch_problem* problem,
                                       const annulus_batch_options* options,
                                       annulus_tuned_report** report) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer(kPlace, report);
    const BatchProblem read = batch_problem_of(problem);
    give_report(report, why_tuned(pin->device, read, batch_options_of(options)));
  });
}

}  // extern "C"
