#ifndef ANNULUS_C_TOOLS_H_
#define ANNULUS_C_TOOLS_H_

// The C interface of packs of tuned results: annulus/tune.h explains what they are and what
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
#include "annulus/c_batch.h"
#include "annulus/c_layout.h"
#include "annulus/c_ring.h"
#include "annulus/c_tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides again from the journal of a search, without its device, as replay_tuning() of
// annulus/tune.h does. Null callback: none; `seconds` of the progress are 0. ANNULUS_FILE where the
// journal cannot be read, ANNULUS_INVALID_FILE where it is none or of another version,
// ANNULUS_UNSUPPORTED where it ends before the heuristic's own choice was measured.
ANNULUS_EXPORT annulus_status annulus_tuning_replay(const char* journal,
                                                    annulus_tune_callback progress,
                                                    void* progress_user, annulus_tuning** tuning);

typedef struct annulus_tuned_list annulus_tuned_list;

// Reads a search path, as annulus_device_options.tuned_path, and behind it what was installed with
// the library. Opens no device. Files that cannot be read are no error: they are listed as ignored.
ANNULUS_EXPORT annulus_status annulus_tuned_list_read(const char* tuned_path,
                                                      annulus_tuned_list** list);
ANNULUS_EXPORT annulus_status annulus_tuned_list_destroy(annulus_tuned_list* list);

typedef struct annulus_tuned_info {
  size_t struct_size;
  const char* folders;  // lines: the search path
  const char* ignored;  // lines: files and folders that are not used, each with the reason
  size_t entries;
} annulus_tuned_info;

#define ANNULUS_TUNED_INFO_INIT \
  { sizeof(annulus_tuned_info), NULL, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_tuned_list_get(annulus_tuned_list* list,
                                                     annulus_tuned_info* info);

#define ANNULUS_TUNED_ENTRY_INIT                                                                  \
  {                                                                                               \
    sizeof(annulus_tuned_entry), NULL, NULL, NULL, NULL, NULL, 0.0, 0.0, 1.0, 1.0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0.0, 0, 0                  \
  }

ANNULUS_EXPORT annulus_status annulus_tuned_list_get_entry(annulus_tuned_list* list, size_t index,
                                                           annulus_tuned_entry* entry);

typedef struct annulus_tuning_report annulus_tuning_report;

// Describes searches and results in a JSON document, as tuning_report() of annulus/tune.h does,
// which explains the paths: `count` of them; with 0 the report is of the search path `tuned_path`,
// as of annulus_tuned_list_read. ANNULUS_FILE if a path cannot be read, ANNULUS_INVALID_FILE if it
// is not a journal, a result, a pack or a folder, ANNULUS_UNSUPPORTED for a pack of another schema,
// and from a build without the tuner.
ANNULUS_EXPORT annulus_status annulus_tuning_report_make(const char* const* paths, size_t count,
                                                         const char* tuned_path,
                                                         annulus_tuning_report** report);
ANNULUS_EXPORT annulus_status annulus_tuning_report_destroy(annulus_tuning_report* report);

typedef struct annulus_tuning_report_info {
  size_t struct_size;
  const char* json;      // the document: ASCII, at most 64 MiB
  const char* left_out;  // lines: files and lines that are not in it, each with the reason
  int64_t searches;      // searches in the document, each from its journal
  int64_t entries;       // results without a journal in the document
} annulus_tuning_report_info;

#define ANNULUS_TUNING_REPORT_INFO_INIT \
  { sizeof(annulus_tuning_report_info), NULL, NULL, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_tuning_report_get(annulus_tuning_report* report,
                                                        annulus_tuning_report_info* info);

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
// Where it measures, it blocks as annulus_tuning_create does.
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
// The same for a plan with a selection (annulus_plan_options).
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

// The C interface of kernels that are compiled ahead, and of folders of compiled kernels:
// annulus/kernels.h explains what they are for. The conventions are those at the top of
// annulus/c.h.
//
//   annulus_warm_work* work = NULL;
//   annulus_warm_options options = ANNULUS_WARM_OPTIONS_INIT;
//   annulus_warm_result result = ANNULUS_WARM_RESULT_INIT;
//   annulus_warm_work_create(&work);
//   annulus_warm_work_add(work, &problem, NULL, NULL);
//   options.folder = "/tmp/kernels";
//   options.devices = "h100,sim:sm_80";
//   annulus_warm_work_run(work, &options, &result);       seconds to minutes

// A problem as a line of a file of shapes, which `annulus warm` reads. Null options are the
// defaults.
ANNULUS_EXPORT annulus_status annulus_shape_line(const annulus_problem* problem,
                                                 const annulus_plan_options* options,
                                                 annulus_text** text);

// Lines: the GPUs that kernels can be compiled for without one: name, ", ", architecture, ": ", and
// a description.
ANNULUS_EXPORT annulus_status annulus_gpu_list(annulus_text** text);

// What kernels are wanted for.
typedef struct annulus_warm_work annulus_warm_work;
ANNULUS_EXPORT annulus_status annulus_warm_work_create(annulus_warm_work** work);
ANNULUS_EXPORT annulus_status annulus_warm_work_destroy(annulus_warm_work* work);
// A plan: null options are the defaults, a null selection is none.
ANNULUS_EXPORT annulus_status annulus_warm_work_add(annulus_warm_work* work,
                                                    const annulus_problem* problem,
                                                    const annulus_plan_options* options,
                                                    const annulus_selection* selection);
// A plan of a batch: null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_warm_work_add_batch(annulus_warm_work* work,
                                                          const annulus_batch_problem* problem,
                                                          const annulus_batch_options* options);

// Also all general kernels, which plans that do not wait begin with.
ANNULUS_EXPORT annulus_status annulus_warm_work_add_general(annulus_warm_work* work);

// The progress of a call. The text lives as long as the callback runs.
typedef struct annulus_warm_progress {
  size_t struct_size;
  int64_t done;  // kernels that are there by now, or failed
  int64_t kernels;
  const char* last;  // of what was done last
  double seconds;    // since the call
} annulus_warm_progress;

// Called on one thread at a time, on threads of the library.
typedef void (*annulus_warm_callback)(void* user, const annulus_warm_progress* progress);

typedef struct annulus_warm_options {
  size_t struct_size;
  const char* folder;  // an absolute path; made where it is missing
  // What to compile for, ',' between them: a device of this machine or a simulated one, as
  // annulus_device_options.name; a GPU of annulus_gpu_list by name; or an architecture, which is
  // all of these that have it. Null or empty: the device that annulus_device_open would take.
  const char* devices;
  const char* template_dir;  // as annulus_device_options, as is the next one
  // Where tuned results are looked for; those of the same chip are used, also for a GPU that is not
  // here.
  const char* tuned_path;
  int64_t threads;  // that compile at a time, up to 1024; 0: one per processor
  // Ends the work soon after it is no longer 0; what was compiled stays. Another thread sets it
  // with an atomic store; a signal handler and the callback may just assign. Null: none. Must
  // outlive the call.
  const volatile int32_t* cancel;
  annulus_warm_callback progress;  // null: none
  void* progress_user;
} annulus_warm_options;

#define ANNULUS_WARM_OPTIONS_INIT \
  { sizeof(annulus_warm_options), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL }

typedef struct annulus_warm_result {
  size_t struct_size;
  int64_t kernels;    // different ones that the work needs
  int64_t compiled;   // by this call
  int64_t there;      // in the folder already, of this very compiler
  int64_t left;       // not compiled, because the call was cancelled
  int64_t bytes;      // of files, of those that are there now
  int64_t failures;   // for annulus_warm_work_get_failure
  int64_t cancelled;  // 0 or 1: some of the work may not even have been looked at
  double seconds;
} annulus_warm_result;

#define ANNULUS_WARM_RESULT_INIT \
  { sizeof(annulus_warm_result), 0, 0, 0, 0, 0, 0, 0, 0.0 }

// Compiles the kernels of the work for all devices into a folder; what is there already is left. A
// shape that does not fit a device costs only itself. Needs NVRTC and no GPU. Returns
// ANNULUS_LIBRARY without NVRTC, ANNULUS_FILE where the folder cannot be written to, and otherwise
// what annulus::warm throws.
ANNULUS_EXPORT annulus_status annulus_warm_work_run(annulus_warm_work* work,
                                                    const annulus_warm_options* options,
                                                    annulus_warm_result* result);

// A shape that has no kernel for a device, or a kernel that does not compile.
typedef struct annulus_warm_failure {
  size_t struct_size;
  const char* device;
  const char* wanted;  // the line of the shape, or what it is a kernel of
  const char* error;
  int64_t status;  // annulus_status
} annulus_warm_failure;

#define ANNULUS_WARM_FAILURE_INIT \
  { sizeof(annulus_warm_failure), NULL, NULL, NULL, 0 }

// Tells a failure of the last annulus_warm_work_run() with this work that ended. Its texts stay
// until the next one, or until the work is destroyed.
ANNULUS_EXPORT annulus_status annulus_warm_work_get_failure(annulus_warm_work* work, size_t index,
                                                            annulus_warm_failure* failure);

// ---- Folders of compiled kernels

typedef struct annulus_prune_options {
  size_t struct_size;
  const char* folder;         // null: as annulus_device_options.cache_dir
  double older_than_seconds;  // remove kernels older than this; negative: whatever their age
  // Then the oldest, until there are no more bytes than this; negative: however many.
  int64_t max_bytes;
  int32_t useless;  // 0 or 1: remove those that serve no device of this machine
  int32_t dry_run;  // 0 or 1: only count
} annulus_prune_options;

#define ANNULUS_PRUNE_OPTIONS_INIT \
  { sizeof(annulus_prune_options), NULL, -1.0, -1, 0, 0 }

typedef struct annulus_prune_result {
  size_t struct_size;
  int64_t removed;
  int64_t removed_bytes;
  int64_t left;
  int64_t left_bytes;
} annulus_prune_result;

#define ANNULUS_PRUNE_RESULT_INIT \
  { sizeof(annulus_prune_result), 0, 0, 0, 0 }

// Removes kernels from a folder. `problems` (null: not wanted) gets lines: files that could not be
// removed. Returns ANNULUS_FILE where the folder is missing or not to be trusted, and
// ANNULUS_INVALID_ARGUMENT for an age that is NaN.
ANNULUS_EXPORT annulus_status annulus_kernels_prune(const annulus_prune_options* options,
                                                    annulus_prune_result* result,
                                                    annulus_text** problems);

typedef struct annulus_verify_result {
  size_t struct_size;
  int64_t kernels;  // whole ones
  int64_t bytes;
  int64_t damaged;
} annulus_verify_result;

#define ANNULUS_VERIFY_RESULT_INIT \
  { sizeof(annulus_verify_result), 0, 0, 0 }

// Reads every kernel of a folder (null: as annulus_device_options.cache_dir). `damaged` (null: not
// wanted) gets lines: files that no device would take, ": ", and why. `remove` (0 or 1) removes
// these. Returns ANNULUS_FILE where the folder is missing or not to be trusted.
ANNULUS_EXPORT annulus_status annulus_kernels_verify(const char* folder, int32_t remove,
                                                     annulus_verify_result* result,
                                                     annulus_text** damaged);

// The C interface of annulus/kernels.h: what is installed on this machine, and which device
// annulus_device_open would take. The conventions are those at the top of annulus/c.h.
//
//   annulus_installation* installation = NULL;
//   annulus_library_report nvrtc = ANNULUS_LIBRARY_REPORT_INIT;
//   annulus_installation_examine(NULL, &installation);
//   annulus_installation_get_library(installation, ANNULUS_LIBRARY_NVRTC, &nvrtc);
//   if (!nvrtc.usable) explain(nvrtc.problem);

typedef struct annulus_installation annulus_installation;

// Looks at everything once: libraries, the devices of the CUDA driver, which it initialises, and a
// folder of compiled kernels (null: as annulus_device_options), which it makes where it is missing.
// Opens no device. What is missing or unfit is told, and no error.
ANNULUS_EXPORT annulus_status annulus_installation_examine(const char* cache_dir,
                                                           annulus_installation** installation);
ANNULUS_EXPORT annulus_status annulus_installation_destroy(annulus_installation* installation);

typedef struct annulus_installation_info {
  size_t struct_size;
  // What annulus_device_open takes where no name is given, and why. An empty name: ANNULUS_DEVICE
  // names no device, and the reason says what is wrong with it.
  const char* default_device;
  const char* default_reason;
  const char* device_problem;  // why there are no devices; empty where there are
  const char* cache_dir;       // empty: no kernels are kept on disk
  const char* cache_problem;   // why the folder is not used; empty where it is
  size_t devices;              // of the CUDA driver
  int64_t cached_kernels;
  int64_t cached_bytes;
  int64_t cache_usable;  // 0 or 1
  // Lines: how many kernels, ": ", and of which origin (annulus_device_info.kernel_origin).
  const char* cached_origins;
  // Lines: folders of kernels compiled ahead that exist (annulus_device_options.kernels_path), ":
  // ", and how many kernels, or why the folder is not used.
  const char* kernel_folders;
} annulus_installation_info;

#define ANNULUS_INSTALLATION_INFO_INIT \
  { sizeof(annulus_installation_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL }

ANNULUS_EXPORT annulus_status annulus_installation_get(annulus_installation* installation,
                                                       annulus_installation_info* info);

typedef enum annulus_library {
  ANNULUS_LIBRARY_CUDA = 0,       // the driver, for devices named cuda:N
  ANNULUS_LIBRARY_SIMULATOR = 1,  // for devices named sim:...
  ANNULUS_LIBRARY_NVRTC = 2,      // for both
  ANNULUS_LIBRARY_NCCL = 3        // for rings of several GPUs
} annulus_library;

typedef struct annulus_library_report {
  size_t struct_size;
  const char* name;          // "the CUDA driver", "NVRTC", ...
  const char* path;          // of the file that was opened; empty: none
  const char* version_text;  // "13.0"
  const char* problem;       // empty: usable. Else what is wrong and what to do about it
  const char* absent;        // lines: optional symbols that it lacks
  const char* tried;         // lines: where it was looked for, ": ", and with which outcome
  int32_t version;           // as the library says; 0: not asked
  int32_t usable;            // 0 or 1
  int64_t simulated;         // 0 or 1: it is the simulator's
} annulus_library_report;

#define ANNULUS_LIBRARY_REPORT_INIT \
  { sizeof(annulus_library_report), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_library(annulus_installation* installation,
                                                               int32_t library,
                                                               annulus_library_report* report);

// A device as its driver describes it.
typedef struct annulus_listed_device {
  size_t struct_size;
  const char* name;            // as annulus_device_options takes it
  const char* description;     // what the driver calls it
  int32_t compute_capability;  // 80, 90, ...
  int32_t simulated;           // 0 or 1: of a simulator that stands in for libcuda.so.1
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
} annulus_listed_device;

#define ANNULUS_LISTED_DEVICE_INIT \
  { sizeof(annulus_listed_device), NULL, NULL, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_device(annulus_installation* installation,
                                                              size_t index,
                                                              annulus_listed_device* device);

// The C interface of states in host memory, annulus/problem.h, and of the oracle, annulus/oracle.h:
// attention in float64 on the host, and the comparison of an answer with it. The conventions are
// those at the top of annulus/c.h. All memory here is the caller's host memory, and no device is
// needed.
//
//   annulus_reference_create(&problem, &inputs, NULL, &reference);
//   annulus_reference_compare(reference, &result, &made);
//   if (!made.within_tolerance) complain(made.first_wrong);

// ---- States

// The version of the meaning of acc, m and l, which annulus/problem.h explains. States of different
// versions do not merge.
#define ANNULUS_STATE_VERSION 1

typedef struct annulus_host_state {
  size_t struct_size;
  int64_t version;  // ANNULUS_STATE_VERSION
  int64_t rows;
  int64_t dim_v;
  float* acc;  // [rows, dim_v]
  float* m;    // [rows]
  float* l;    // [rows]; 0 where no key was visible
} annulus_host_state;

#define ANNULUS_HOST_STATE_INIT \
  { sizeof(annulus_host_state), ANNULUS_STATE_VERSION, 0, 0, NULL, NULL, NULL }

// Writes the state of no keys.
ANNULUS_EXPORT annulus_status annulus_state_clear(const annulus_host_state* state);
// Writes to the arrays of `into` the state of the union of both key sets, which must be disjoint.
// `into` has the rows and dim_v of both, and may be either of them.
ANNULUS_EXPORT annulus_status annulus_state_merge(const annulus_host_state* a,
                                                  const annulus_host_state* b,
                                                  const annulus_host_state* into);
// Writes O, [rows, dim_v], and LSE, [rows], in an annulus_lse_base: an empty row gives 0 and -inf.
ANNULUS_EXPORT annulus_status annulus_state_finish(const annulus_host_state* state,
                                                   int32_t lse_base, float* o, float* lse);

// ---- The oracle

// Host copies of Q, K and V, bits of the problem's dtype, laid out as on the device.
typedef struct annulus_host_inputs {
  size_t struct_size;
  const void* q;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k;  // [B, Sk, Hkv, Dqk]
  const void* v;  // [B, Sk, Hkv, Dv]
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  const annulus_host_state* state_in;  // B H Sq rows, with carry_in
  const float* scale_q;                // with e4m3, as in annulus_operands
  const float* scale_k;
  const float* scale_v;
  int64_t broadcast_rows;  // 0 or 1: as in annulus_operands
} annulus_host_inputs;

#define ANNULUS_HOST_INPUTS_INIT                                                                \
  {                                                                                             \
    sizeof(annulus_host_inputs), NULL, NULL, NULL, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, NULL, NULL, \
        NULL, NULL, 0                                                                           \
  }

// Called with the share of the rows that is done, from one thread at a time, not always the
// caller's.
typedef void (*annulus_oracle_callback)(void* user, double share);

typedef struct annulus_reference_options {
  size_t struct_size;
  // Above this many questions to the pattern, B H Sq Sk, only some rows are computed: the first and
  // the last tile_rows rows of every (batch, head), and sampled_rows more, drawn from the seed.
  int64_t max_pairs;
  int64_t tile_rows;
  int64_t sampled_rows;
  uint64_t seed;
  int64_t threads;  // that share the rows; 0: one for each processor of this process
  annulus_oracle_callback progress;  // null: none
  void* progress_user;
} annulus_reference_options;

#define ANNULUS_REFERENCE_OPTIONS_INIT \
  { sizeof(annulus_reference_options), INT64_C(1) << 31, 128, 256, 0, 0, NULL, NULL }

typedef struct annulus_reference annulus_reference;

// Null options are the defaults. Errors are those of annulus_problem_validate, and
// ANNULUS_INVALID_ARGUMENT where inputs lack what the problem reads.
ANNULUS_EXPORT annulus_status annulus_reference_create(const annulus_problem* problem,
                                                       const annulus_host_inputs* inputs,
                                                       const annulus_reference_options* options,
                                                       annulus_reference** reference);
ANNULUS_EXPORT annulus_status annulus_reference_destroy(annulus_reference* reference);

// The answer for the rows that were computed; the arrays belong to the handle.
typedef struct annulus_reference_rows {
  size_t struct_size;
  int64_t count;  // rows; all B H Sq where `sampled` is 0
  int64_t dim_v;
  const int64_t* rows;     // (b H + h) Sq + i, ascending
  const double* o;         // [count, dim_v]; 0 in empty rows
  const double* m;         // [count], base 2; -inf in empty rows
  const double* l;         // [count]; 0 in empty rows
  const uint8_t* tainted;  // [count]: 1 where an operand that the row reads is not finite
  int32_t sampled;         // 0 or 1
} annulus_reference_rows;

#define ANNULUS_REFERENCE_ROWS_INIT \
  { sizeof(annulus_reference_rows), 0, 0, NULL, NULL, NULL, NULL, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_reference_get(annulus_reference* reference,
                                                    annulus_reference_rows* rows);

// The results of a kernel, copied to host memory: O and perhaps LSE, or the state that it carried
// out.
typedef struct annulus_host_result {
  size_t struct_size;
  const uint16_t* o;  // [B, Sq, H, Dv] in the order of o_strides, bits of the output dtype
  annulus_strides o_strides;
  const float* lse;                 // [B, H, Sq] contiguous, in the problem's base; null: none
  const annulus_host_state* state;  // instead of the others, with carry_out
  // [B, H, Sq]: rows that are not compared, as annulus_problem_reached_rows writes them; null:
  // none.
  const uint8_t* excused;
} annulus_host_result;

#define ANNULUS_HOST_RESULT_INIT \
  { sizeof(annulus_host_result), NULL, {0, 0, 0}, NULL, NULL, NULL }

// The largest errors that an answer may have.
typedef struct annulus_tolerance {
  size_t struct_size;
  double row;        // relative L2 error of a row
  double frobenius;  // relative Frobenius error of a (batch, head)
  double lse;        // |difference| / max(1, |LSE|)
} annulus_tolerance;

#define ANNULUS_TOLERANCE_INIT \
  { sizeof(annulus_tolerance), 0.0, 0.0, 0.0 }

// The tolerance for Q, K and V of an annulus_dtype; docs/architecture.md explains it.
ANNULUS_EXPORT annulus_status annulus_tolerance_get(int32_t dtype, annulus_tolerance* tolerance);

// Relative errors; annulus/oracle.h says relative to what. Infinity marks an error that no
// tolerance allows.
typedef struct annulus_comparison {
  size_t struct_size;
  double error_row_max;
  double error_o;
  double error_lse;  // 0 where no LSE was written; the error of m + log2(l) with a carried state
  int64_t checked_rows;
  int64_t tainted_rows;      // not compared: an operand they read is not finite
  int64_t wrong_rows;        // beyond the tolerance of a row or of an LSE
  int32_t within_tolerance;  // 0 or 1; also 1 where no row was compared: look at checked_rows
  char first_wrong[252];     // position and values of the first wrong row; empty: none
} annulus_comparison;

#define ANNULUS_COMPARISON_INIT                                  \
  {                                                              \
    sizeof(annulus_comparison), 0.0, 0.0, 0.0, 0, 0, 0, 0, { 0 } \
  }

// Compares an answer with the reference of its problem. Differences are no error: look at
// `comparison`.
ANNULUS_EXPORT annulus_status annulus_reference_compare(annulus_reference* reference,
                                                        const annulus_host_result* result,
                                                        annulus_comparison* comparison);

// Writes reached [B, H, Sq]: 1 where a NaN or an infinity in an operand may reach the row, because
// the row's tiles read it. tile_rows and tile_columns are those of the plan.
ANNULUS_EXPORT annulus_status annulus_problem_reached_rows(const annulus_problem* problem,
                                                           const annulus_host_inputs* inputs,
                                                           int64_t tile_rows, int64_t tile_columns,
                                                           uint8_t* reached);

// Adds what was planned since it last was to the file of annulus_device_options.shape_log, and
// returns when it is there; does nothing without such a file. ANNULUS_FILE where it cannot be
// written, ANNULUS_INVALID_FILE where it is there and is no log of shapes; what was counted is kept
// for the next time.
ANNULUS_EXPORT annulus_status annulus_device_flush_shape_log(annulus_device* device);

typedef struct annulus_pattern_word {
  size_t struct_size;
  const char* name;     // "window"; stays as long as the library
  const char* form;     // with its arguments named: "window(left, right)"; likewise
  const char* meaning;  // what a query sees, in a line; likewise
} annulus_pattern_word;

#define ANNULUS_PATTERN_WORD_INIT \
  { sizeof(annulus_pattern_word), NULL, NULL, NULL }

ANNULUS_EXPORT size_t annulus_pattern_word_count(void);
// An index of annulus_pattern_word_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_pattern_word_get(size_t index, annulus_pattern_word* word);

typedef struct annulus_preset {
  size_t struct_size;
  const char* name;        // stays as long as the library
  const char* expression;  // likewise
  double density_4096;     // visible pairs over all pairs of 12 heads at Sq = Sk = 4096
  double density_16384;
  double density_65536;
} annulus_preset;

#define ANNULUS_PRESET_INIT \
  { sizeof(annulus_preset), NULL, NULL, 0.0, 0.0, 0.0 }

ANNULUS_EXPORT size_t annulus_preset_count(void);
// An index of annulus_preset_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_preset_get(size_t index, annulus_preset* preset);

typedef struct annulus_recall_meter annulus_recall_meter;

// `problem` is that of the runs that are judged; it has want_lse. Any number of threads may run one
// at a time.
ANNULUS_EXPORT annulus_status annulus_recall_meter_create(annulus_device* device,
                                                          const annulus_problem* problem,
                                                          const annulus_plan_options* options,
                                                          annulus_recall_meter** meter);
ANNULUS_EXPORT annulus_status annulus_recall_meter_destroy(annulus_recall_meter* meter);
// Scratch memory that every concurrent run needs of its own, 16-byte aligned.
ANNULUS_EXPORT annulus_status annulus_recall_meter_workspace_bytes(annulus_recall_meter* meter,
                                                                   size_t* bytes);
// Writes recall, fp32 [B, H, Sq] in device memory: the share of each query's softmax mass that
// belongs to the pairs attended to; 1 for a query that sees no key. `operands` are those of the
// run, whose LSEs operands->lse holds by then; Q, K and V must be as they were in the run.
// Asynchronous, as annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_recall_meter_run(annulus_recall_meter* meter, void* stream,
                                                       const annulus_operands* operands,
                                                       float* recall, void* workspace);
// Summarises recalls in host memory; without any, both numbers are 1.
ANNULUS_EXPORT annulus_status annulus_recall_summarise(const float* recall, size_t count,
                                                       double* mean, double* least);

// The head dims that kernels exist for, ascending; with e4m3 operands only those of 64 and more are
// supported.
ANNULUS_EXPORT size_t annulus_dims_count(void);
// An index of annulus_dims_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_dims_get(size_t index, int64_t* dim_qk, int64_t* dim_v);

// Visible pairs of a query and a key over all pairs, of all heads; exact, whatever the tiles of a
// plan; 0 where there are no pairs. What an answer needs is 2 (Dqk + Dv) floating-point operations
// for each visible pair. Needs no device. A null limit is the default one.
ANNULUS_EXPORT annulus_status annulus_problem_density(const annulus_problem* problem,
                                                      const annulus_work_limit* limit,
                                                      double* density);

enum { ANNULUS_MAX_PIPES = 8 };

// One pipe of a multiprocessor, or the transfer of bytes that it waits for.
typedef struct annulus_pipe {
  const char* name;  // "tensor cores", ...; stays as long as the library
  double busy;       // its share of the time in which it works, on an average multiprocessor
} annulus_pipe;

// How long the pipe model (docs/tuning.md) predicts a run to take, without running it.
// docs/performance.md compares predictions with times of an H200.
typedef struct annulus_prediction {
  size_t struct_size;
  double micros;  // infinite where not one CTA fits
  // The pipe, or what else, that the run is bound by; stays as long as the library.
  const char* limit;
  size_t pipe_count;
  annulus_pipe pipes[ANNULUS_MAX_PIPES];
  // The range in which the time lies if each constant of the model lies in its own interval.
  double least_micros;
  double most_micros;
} annulus_prediction;

#define ANNULUS_PREDICTION_INIT \
  { sizeof(annulus_prediction), 0.0, NULL, 0, {{NULL, 0.0}}, 0.0, 0.0 }

// Computed anew in each call; takes milliseconds where there are many tile rows.
ANNULUS_EXPORT annulus_status annulus_plan_predict(annulus_plan* plan,
                                                   annulus_prediction* prediction);

// A count that a simulated device has made since it was opened or its counters were last cleared. A
// real device has no counters.
typedef struct annulus_counter {
  const char* name;  // "launches", "warp_instructions", ...; stays as long as the device's handle
  uint64_t value;
} annulus_counter;

// Writes the first `capacity` counters, in a fixed order, and to *count how many there are. With
// `clear` 1 all are set back to 0.
ANNULUS_EXPORT annulus_status annulus_device_get_counters(annulus_device* device, int32_t clear,
                                                          annulus_counter* counters,
                                                          size_t capacity, size_t* count);

// The lists of tiles that plans asked for since the device was opened: made on the host, and copied
// to the device. Either may be null.
ANNULUS_EXPORT annulus_status annulus_device_get_list_counters(annulus_device* device,
                                                               annulus_cache_counters* on_host,
                                                               annulus_cache_counters* on_device);

// The simulation_* fields of annulus_device_options, for a device that is open.
typedef struct annulus_simulation {
  size_t struct_size;
  uint64_t seed;
  int64_t threads;
  int32_t checked;  // 0 or 1
} annulus_simulation;

#define ANNULUS_SIMULATION_INIT \
  { sizeof(annulus_simulation), 0, 0, 1 }

// Sets how a simulated device runs what is launched from now on; a real one ignores it. Null stands
// for the defaults.
ANNULUS_EXPORT annulus_status annulus_device_set_simulation(annulus_device* device,
                                                            const annulus_simulation* simulation);

// Records what the library does in this process; the newest max_spans spans are kept, from 1 to
// 2^24, or 65,536 for 0.
ANNULUS_EXPORT annulus_status annulus_trace_start(int64_t max_spans);
ANNULUS_EXPORT annulus_status annulus_trace_stop(void);

typedef struct annulus_trace_state {
  size_t struct_size;
  int64_t recording;  // 0 or 1
  int64_t spans;
  int64_t lost;
} annulus_trace_state;

#define ANNULUS_TRACE_STATE_INIT \
  { sizeof(annulus_trace_state), 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_trace_read_state(annulus_trace_state* to);

// What was recorded, in the Trace Event Format: as a text, and as a file.
ANNULUS_EXPORT annulus_status annulus_trace_json(annulus_text** text);
ANNULUS_EXPORT annulus_status annulus_trace_write(const char* path);

typedef struct annulus_layout_statistics {
  size_t struct_size;
  int64_t rows;     // ceil(Sq / R)
  int64_t columns;  // ceil(Sk / C)
  int64_t heads;    // H; 1: any number
  int64_t distinct_heads;
  int64_t kept;          // blocks, over the distinct heads
  int64_t partial;       // partial blocks among them
  double block_density;  // of all query heads
  // Blocks of one row or column of one distinct head. Mean and ratio over all of them, empty ones
  // too.
  int64_t shortest_row;
  int64_t longest_row;
  int64_t empty_rows;
  int64_t shortest_column;
  int64_t longest_column;
  int64_t empty_columns;
  double row_imbalance;     // longest over mean: 1 is even; 0 where nothing is kept
  double column_imbalance;  // likewise
  double mean_distance;     // tokens between a kept block and the diagonal, 0 on it
  int64_t bytes;            // of the arrays
  // Set by annulus_pattern_statistics, 0 otherwise: the density of visible pairs, exact, and the
  // density of blocks over it.
  double pair_density;
  double overhead;
} annulus_layout_statistics;

#define ANNULUS_LAYOUT_STATISTICS_INIT                                                            \
  {                                                                                               \
    sizeof(annulus_layout_statistics), 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0, \
        0.0, 0.0                                                                                  \
  }

ANNULUS_EXPORT annulus_status annulus_layout_get_statistics(annulus_layout* layout,
                                                            annulus_layout_statistics* statistics);
// Counts the blocks of a pattern, and its pairs one by one. `options` as in annulus_layout_make;
// its device is not used.
ANNULUS_EXPORT annulus_status annulus_pattern_statistics(const char* pattern,
                                                         const annulus_block_layout* blocks,
                                                         const annulus_layout_sizes* sizes,
                                                         const annulus_layout_options* options,
                                                         annulus_layout_statistics* statistics);

// Writes shares [layers]: entry n - 1 is the share of (row block, column block) pairs for which n
// layers carry what is in the column to the row. ANNULUS_UNSUPPORTED above 2^34 pairs of blocks,
// ANNULUS_INVALID_ARGUMENT for layers outside [1, 1024].
ANNULUS_EXPORT annulus_status annulus_layout_reachability(annulus_layout* layout, int32_t layers,
                                                          double* shares);

// Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_layout_picture(annulus_layout* layout,
                                                     const annulus_picture_options* options,
                                                     annulus_text** picture);

typedef struct annulus_layout_difference {
  size_t struct_size;
  int64_t only_first;  // blocks kept by the first alone, over all query heads
  int64_t only_second;
  int64_t flags;       // blocks kept by both and partial in one
  int32_t same_sizes;  // 0: the counts are 0 and the text says which sizes differ
} annulus_layout_difference;

#define ANNULUS_LAYOUT_DIFFERENCE_INIT \
  { sizeof(annulus_layout_difference), 0, 0, 0, 1 }

// `text`, where it is not null, gets a line for each row of blocks that differs, at most max_lines
// of them; empty: no difference.
ANNULUS_EXPORT annulus_status annulus_layout_compare(annulus_layout* first, annulus_layout* second,
                                                     int64_t max_lines,
                                                     annulus_layout_difference* difference,
                                                     annulus_text** text);

// "under way", "good", "void"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_run_state_text(int state);

// "opened", "slow", "gone", "given up"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_communicator_event_text(int kind);

// The schedule as an SVG document: a row for each rank, a column for each step. Drawn at the first
// call.
ANNULUS_EXPORT annulus_status annulus_ring_get_picture(annulus_ring* ring, const char** svg);

// Each distinct head gets round(density x rows x columns) blocks; added blocks are blocks of
// `within` where that is not null. annulus/layout.h says which blocks are dropped and added.
ANNULUS_EXPORT annulus_status annulus_layout_with_density(annulus_layout* layout, double density,
                                                          annulus_layout* within,
                                                          annulus_layout** result);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_TOOLS_H_
