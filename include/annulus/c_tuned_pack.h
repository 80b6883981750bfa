#ifndef ANNULUS_C_TUNED_PACK_H_
#define ANNULUS_C_TUNED_PACK_H_

// The C interface of packs of tuned results: annulus/tuned_pack.h explains what they are and what
// each function does. The conventions are those at the top of annulus/c.h.
//
//   annulus_tuned_export("fleet.pack", NULL, NULL, &report);
//   annulus_tuned_report_get(report, &info);
//   for (i = 0; i < info.notes; ++i) annulus_tuned_report_get_note(report, i, &note);
//
// Paths of packs may be relative. Errors of all of them: ANNULUS_FILE where a file cannot be read
// or written, ANNULUS_INVALID_FILE where a pack that is named is none, was cut or changed,
// ANNULUS_UNSUPPORTED where it is of another schema. A search path is as
// annulus_device_options.tuned_path; null: the default one.

#include "annulus/c.h"
#include "annulus/c_tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// A verdict says what became of an entry, or what is found of it.
typedef enum annulus_tuned_verdict {
  ANNULUS_TUNED_ADDED = 0,
  ANNULUS_TUNED_REPLACED = 1,
  ANNULUS_TUNED_KEPT = 2,
  ANNULUS_TUNED_FIRST_ONLY = 3,
  ANNULUS_TUNED_SECOND_ONLY = 4,
  ANNULUS_TUNED_DIFFERS = 5,
  ANNULUS_TUNED_USED = 6,
  ANNULUS_TUNED_UNUSED = 7,
  ANNULUS_TUNED_HOLDS = 8,
  ANNULUS_TUNED_WEAKER = 9,
  ANNULUS_TUNED_FAILS = 10,
  ANNULUS_TUNED_NOT_MEASURED = 11,
  ANNULUS_TUNED_REMOVED = 12
} annulus_tuned_verdict;

// "added", "replaced", ...; a static string, "unknown verdict" for another number.
ANNULUS_EXPORT const char* annulus_tuned_verdict_text(int32_t verdict);

typedef struct annulus_tuned_report annulus_tuned_report;

ANNULUS_EXPORT annulus_status annulus_tuned_report_destroy(annulus_tuned_report* report);

typedef struct annulus_tuned_report_info {
  size_t struct_size;
  size_t notes;          // for annulus_tuned_report_get_note
  const char* left_out;  // lines: files, folders and lines of packs that hold no entry, and why
  // annulus_tuned_why alone fills these: the kind of the problem, the configuration of a plan, and
  // why.
  const char* shape;
  const char* config;
  const char* reason;
} annulus_tuned_report_info;

#define ANNULUS_TUNED_REPORT_INFO_INIT \
  { sizeof(annulus_tuned_report_info), 0, NULL, NULL, NULL, NULL }

ANNULUS_EXPORT annulus_status annulus_tuned_report_get(annulus_tuned_report* report,
                                                       annulus_tuned_report_info* info);

typedef struct annulus_tuned_note {
  size_t struct_size;
  int32_t verdict;   // annulus_tuned_verdict
  const char* text;  // why, or in what it differs; empty where the verdict says all
} annulus_tuned_note;

#define ANNULUS_TUNED_NOTE_INIT \
  { sizeof(annulus_tuned_note), 0, NULL }

// Fills in what is said of one entry, and the entry; either may be null. Texts live as long as the
// report.
ANNULUS_EXPORT annulus_status annulus_tuned_report_get_note(annulus_tuned_report* report,
                                                            size_t index, annulus_tuned_note* note,
                                                            annulus_tuned_entry* entry);

// Which entries are meant: those that have all that is asked for. Null or empty: any.
typedef struct annulus_tuned_filter {
  size_t struct_size;
  const char* name;       // part of the entry's name or path
  const char* device;     // part of its device
  int32_t measured_only;  // 0 or 1: no predictions
  int32_t complete_only;  // 0 or 1: none of a search that was cut short
} annulus_tuned_filter;

#define ANNULUS_TUNED_FILTER_INIT \
  { sizeof(annulus_tuned_filter), NULL, NULL, 0, 0 }

// Writes the entries of a search path to a pack. Null filter: all. ANNULUS_INVALID_ARGUMENT if
// no entry is meant, or if the pack would be larger than 64 MiB, which is the most that is read;
// nothing is then written.
ANNULUS_EXPORT annulus_status annulus_tuned_export(const char* pack,
                                                   const annulus_tuned_filter* filter,
                                                   const char* tuned_path,
                                                   annulus_tuned_report** report);

// Writes the entries of `count` packs to the first folder of a search path that takes them. One in
// which a device would have more than 10000 entries, the most that is read, takes none.
ANNULUS_EXPORT annulus_status annulus_tuned_import(const char* const* packs, size_t count,
                                                   const annulus_tuned_filter* filter,
                                                   const char* tuned_path,
                                                   annulus_tuned_report** report);

// Writes all entries of `count` packs, at least one, to the pack `to`. ANNULUS_INVALID_ARGUMENT as
// annulus_tuned_export.
ANNULUS_EXPORT annulus_status annulus_tuned_merge(const char* const* packs, size_t count,
                                                  const char* to, annulus_tuned_report** report);

// In what two packs, or search paths, differ. A pack's name ends in ".pack". Returns ANNULUS_FILE
// where nothing is at a path, or at none of the places of a search path.
ANNULUS_EXPORT annulus_status annulus_tuned_diff(const char* first, const char* second,
                                                 annulus_tuned_report** report);

typedef struct annulus_tuned_verify_options {
  size_t struct_size;
  const char* const* packs;  // null: what the device's search path holds
  size_t count;              // of them
  int64_t measure;           // so many entries are measured again; 0: none
  uint64_t seed;             // of the operands and of which entries are taken
  // Ends measuring soon after it is no longer 0, as annulus_tune_options.cancel. Null: none.
  const volatile int32_t* cancel;
} annulus_tuned_verify_options;

#define ANNULUS_TUNED_VERIFY_OPTIONS_INIT \
  { sizeof(annulus_tuned_verify_options), NULL, 0, 0, 0, NULL }

// Whether entries serve a device, and why not where they do not. Null options are the defaults.
// Where it measures, it blocks as annulus_tune does.
ANNULUS_EXPORT annulus_status annulus_tuned_verify(annulus_device* device,
                                                   const annulus_tuned_verify_options* options,
                                                   annulus_tuned_report** report);

// Removes files of a search path that no plan of this build or a newer one uses, and journals that
// no search goes on from. `device_key` (annulus_device_info.tuned_key): also those of other
// devices; null: those stay. `dry_run`, 0 or 1, removes nothing.
ANNULUS_EXPORT annulus_status annulus_tuned_prune(const char* tuned_path, const char* device_key,
                                                  int32_t dry_run, annulus_tuned_report** report);

// Removes the one file whose entry has `name` in its name or path. ANNULUS_INVALID_ARGUMENT where
// none or several have, or where it is in a pack.
ANNULUS_EXPORT annulus_status annulus_tuned_remove(const char* name, const char* tuned_path,
                                                   int32_t dry_run, annulus_tuned_report** report);

// Which entry a plan of this problem uses on a device, and of each other one why it does not.
ANNULUS_EXPORT annulus_status annulus_tuned_why(annulus_device* device,
                                                const annulus_problem* problem,
                                                annulus_tuned_report** report);
// The same for a plan with a selection (annulus_plan_create_selected).
ANNULUS_EXPORT annulus_status annulus_tuned_why_selected(annulus_device* device,
                                                         const annulus_problem* problem,
                                                         const annulus_selection* selection,
                                                         annulus_tuned_report** report);
// The same for a batch (annulus_batch_plan_create), each class of whose requests has an entry of
// its own: the texts of the report are those of all classes. Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_tuned_why_batch(annulus_device* device,
                                                      const annulus_batch_problem* problem,
                                                      const annulus_batch_options* options,
                                                      annulus_tuned_report** report);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_TUNED_PACK_H_
