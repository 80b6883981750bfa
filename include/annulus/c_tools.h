#ifndef ANNULUS_C_TOOLS_H_
#define ANNULUS_C_TOOLS_H_

// Functions for tools: packs of tuned results, kernels compiled ahead, the installation, the
// oracle, predictions, statistics, traces and lists. These functions may change in any version,
// unlike the other C headers. The conventions are at the top of annulus/c.h, and the C++
// declarations named in each section have the full meaning.
//
//   annulus_tuned_export("fleet.pack", NULL, NULL, &report);
//   annulus_tuned_report_get(report, &info);
//   for (i = 0; i < info.notes; ++i) annulus_tuned_report_get_note(report, i, &note, NULL);

#include "annulus/c.h"
#include "annulus/c_batch.h"
#include "annulus/c_layout.h"
#include "annulus/c_ring.h"
#include "annulus/c_tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Stored results of tuning (annulus/tune.h)
//
// tuned_path is a search path as in annulus_device_options; null: the default one.

// Calls annulus::replay_tuning. The callback may be null; `seconds` of the progress are 0.
ANNULUS_EXPORT annulus_status annulus_tuning_replay(const char* journal,
                                                    annulus_tune_callback progress,
                                                    void* progress_user, annulus_tuning** tuning);

typedef struct annulus_tuned_list annulus_tuned_list;

// Calls annulus::list_tuned. Unreadable files are not an error: they are listed in `ignored`.
ANNULUS_EXPORT annulus_status annulus_tuned_list_read(const char* tuned_path,
                                                      annulus_tuned_list** list);
ANNULUS_EXPORT annulus_status annulus_tuned_list_destroy(annulus_tuned_list* list);

typedef struct annulus_tuned_info {
  size_t struct_size;
  const char* folders;  // lines: the search path
  const char* ignored;  // lines: unused files and folders, each with the reason
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

// Calls annulus::tuning_report. With `count` 0 the report is of the search path `tuned_path`.
ANNULUS_EXPORT annulus_status annulus_tuning_report_make(const char* const* paths, size_t count,
                                                         const char* tuned_path,
                                                         annulus_tuning_report** report);
ANNULUS_EXPORT annulus_status annulus_tuning_report_destroy(annulus_tuning_report* report);

typedef struct annulus_tuning_report_info {
  size_t struct_size;
  const char* json;      // the document: ASCII, at most 64 MiB
  const char* left_out;  // lines: omitted files and lines, each with the reason
  int64_t searches;      // searches in the document, each from its journal
  int64_t entries;       // results without a journal in the document
} annulus_tuning_report_info;
#define ANNULUS_TUNING_REPORT_INFO_INIT \
  { sizeof(annulus_tuning_report_info), NULL, NULL, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_tuning_report_get(annulus_tuning_report* report,
                                                        annulus_tuning_report_info* info);

// ---- Packs (annulus/tune.h). Paths of packs may be relative.

// The C form of annulus::TunedVerdict.
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
  size_t notes;          // count for annulus_tuned_report_get_note
  const char* left_out;  // lines: files, folders and lines of packs without an entry, and why
  // Only for annulus_tuned_why: the problem's kind, the plan's configuration, and the reason.
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
  const char* text;  // the reason or the differences; empty if the verdict needs none
} annulus_tuned_note;
#define ANNULUS_TUNED_NOTE_INIT \
  { sizeof(annulus_tuned_note), 0, NULL }

// Stores one verdict and its entry; either may be null. Texts live as long as the report.
ANNULUS_EXPORT annulus_status annulus_tuned_report_get_note(annulus_tuned_report* report,
                                                            size_t index, annulus_tuned_note* note,
                                                            annulus_tuned_entry* entry);

// The C form of annulus::TunedFilter. Null or empty: any.
typedef struct annulus_tuned_filter {
  size_t struct_size;
  const char* name;       // part of the entry's name or path
  const char* device;     // part of its device
  int32_t measured_only;  // 0 or 1: no predictions
  int32_t complete_only;  // 0 or 1: no results of interrupted searches
} annulus_tuned_filter;
#define ANNULUS_TUNED_FILTER_INIT \
  { sizeof(annulus_tuned_filter), NULL, NULL, 0, 0 }

// Calls annulus::export_tuned.
ANNULUS_EXPORT annulus_status annulus_tuned_export(const char* pack,
                                                   const annulus_tuned_filter* filter,
                                                   const char* tuned_path,
                                                   annulus_tuned_report** report);

// Calls annulus::import_tuned, with `count` packs.
ANNULUS_EXPORT annulus_status annulus_tuned_import(const char* const* packs, size_t count,
                                                   const annulus_tuned_filter* filter,
                                                   const char* tuned_path,
                                                   annulus_tuned_report** report);

// Calls annulus::merge_tuned, with `count` packs, at least one.
ANNULUS_EXPORT annulus_status annulus_tuned_merge(const char* const* packs, size_t count,
                                                  const char* to, annulus_tuned_report** report);

// Calls annulus::diff_tuned.
ANNULUS_EXPORT annulus_status annulus_tuned_diff(const char* first, const char* second,
                                                 annulus_tuned_report** report);

// The C form of annulus::TunedVerifyOptions.
typedef struct annulus_tuned_verify_options {
  size_t struct_size;
  const char* const* packs;  // null: the device's search path
  size_t count;              // number of packs
  int64_t measure;           // number of entries to measure again; 0: none
  uint64_t seed;             // seed of the operands and of the choice of entries
  const volatile int32_t*
      cancel;  // ends measuring, like annulus_tune_options.cancel; null: no flag
} annulus_tuned_verify_options;
#define ANNULUS_TUNED_VERIFY_OPTIONS_INIT \
  { sizeof(annulus_tuned_verify_options), NULL, 0, 0, 0, NULL }

// Calls annulus::verify_tuned. If it measures, it blocks like annulus_tuning_create.
ANNULUS_EXPORT annulus_status annulus_tuned_verify(annulus_device* device,
                                                   const annulus_tuned_verify_options* options,
                                                   annulus_tuned_report** report);

// Calls annulus::prune_tuned. Null device_key: other devices' results stay. dry_run 1: none is
// removed.
ANNULUS_EXPORT annulus_status annulus_tuned_prune(const char* tuned_path, const char* device_key,
                                                  int32_t dry_run, annulus_tuned_report** report);

// Calls annulus::remove_tuned. With dry_run 1 nothing is removed.
ANNULUS_EXPORT annulus_status annulus_tuned_remove(const char* name, const char* tuned_path,
                                                   int32_t dry_run, annulus_tuned_report** report);

// Calls annulus::why_tuned, for plans, for plans with a selection, and for batches.
ANNULUS_EXPORT annulus_status annulus_tuned_why(annulus_device* device,
                                                const annulus_problem* problem,
                                                annulus_tuned_report** report);
ANNULUS_EXPORT annulus_status annulus_tuned_why_selected(annulus_device* device,
                                                         const annulus_problem* problem,
                                                         const annulus_selection* selection,
                                                         annulus_tuned_report** report);
ANNULUS_EXPORT annulus_status annulus_tuned_why_batch(annulus_device* device,
                                                      const annulus_batch_problem* problem,
                                                      const annulus_batch_options* options,
                                                      annulus_tuned_report** report);

// ---- Kernels compiled ahead (annulus/kernels.h)
//
//   annulus_warm_work* work = NULL;
//   annulus_warm_options options = ANNULUS_WARM_OPTIONS_INIT;
//   annulus_warm_result result = ANNULUS_WARM_RESULT_INIT;
//   annulus_warm_work_create(&work);
//   annulus_warm_work_add(work, &problem, NULL, NULL);
//   options.folder = "/tmp/kernels";
//   options.devices = "h100,sim:sm_80";
//   annulus_warm_work_run(work, &options, &result);       // seconds to minutes

// Calls annulus::shape_line.
ANNULUS_EXPORT annulus_status annulus_shape_line(const annulus_problem* problem,
                                                 const annulus_plan_options* options,
                                                 annulus_text** text);

// Writes lines of known GPUs: name, ", ", architecture, ": ", and a description.
ANNULUS_EXPORT annulus_status annulus_gpu_list(annulus_text** text);

// The C form of annulus::WarmWork: the plans whose kernels are to be compiled.
typedef struct annulus_warm_work annulus_warm_work;
ANNULUS_EXPORT annulus_status annulus_warm_work_create(annulus_warm_work** work);
ANNULUS_EXPORT annulus_status annulus_warm_work_destroy(annulus_warm_work* work);
// Adds a plan. Null options are the defaults; the selection may be null.
ANNULUS_EXPORT annulus_status annulus_warm_work_add(annulus_warm_work* work,
                                                    const annulus_problem* problem,
                                                    const annulus_plan_options* options,
                                                    const annulus_selection* selection);
// Adds a plan of a batch.
ANNULUS_EXPORT annulus_status annulus_warm_work_add_batch(annulus_warm_work* work,
                                                          const annulus_batch_problem* problem,
                                                          const annulus_batch_options* options);

// Adds all general kernels, with which plans that do not wait begin.
ANNULUS_EXPORT annulus_status annulus_warm_work_add_general(annulus_warm_work* work);

// The progress of a call. The text is valid during the callback.
typedef struct annulus_warm_progress {
  size_t struct_size;
  int64_t done;  // kernels that are in the folder, or failed
  int64_t kernels;
  const char* last;  // the last kernel
  double seconds;    // time since the beginning of the call
} annulus_warm_progress;

// Called on one thread at a time, on threads of the library.
typedef void (*annulus_warm_callback)(void* user, const annulus_warm_progress* progress);

// The C form of annulus::WarmOptions.
typedef struct annulus_warm_options {
  size_t struct_size;
  const char* folder;        // an absolute path; created if it is missing
  const char* devices;       // devices, known GPUs or architectures, separated by ','
  const char* template_dir;  // see annulus_device_options
  const char* tuned_path;    // see annulus_device_options
  int64_t threads;           // compiling threads, up to 1024; 0: one per processor
  // Ends the work soon after it is no longer 0; compiled kernels stay. Another thread sets it with
  // an atomic store; a signal handler and the callback may assign it. It must outlive the call.
  // Null: no flag.
  const volatile int32_t* cancel;
  annulus_warm_callback progress;  // null: no callback
  void* progress_user;
} annulus_warm_options;
#define ANNULUS_WARM_OPTIONS_INIT \
  { sizeof(annulus_warm_options), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL }

// The C form of annulus::WarmResult.
typedef struct annulus_warm_result {
  size_t struct_size;
  int64_t kernels;    // distinct kernels of the work
  int64_t compiled;   // kernels that this call compiled
  int64_t there;      // kernels of this compiler that were in the folder
  int64_t left;       // kernels that were not compiled because the call was cancelled
  int64_t bytes;      // bytes of the kernels' files that exist now
  int64_t failures;   // count for annulus_warm_work_get_failure
  int64_t cancelled;  // 0 or 1: some shapes may not have been examined
  double seconds;
} annulus_warm_result;
#define ANNULUS_WARM_RESULT_INIT \
  { sizeof(annulus_warm_result), 0, 0, 0, 0, 0, 0, 0, 0.0 }

// Calls annulus::warm. Needs NVRTC and no GPU.
ANNULUS_EXPORT annulus_status annulus_warm_work_run(annulus_warm_work* work,
                                                    const annulus_warm_options* options,
                                                    annulus_warm_result* result);

// A shape without a kernel for a device, or a kernel that does not compile.
typedef struct annulus_warm_failure {
  size_t struct_size;
  const char* device;
  const char* wanted;  // the line of the shape, or a description of the kernel
  const char* error;
  int64_t status;  // annulus_status
} annulus_warm_failure;
#define ANNULUS_WARM_FAILURE_INIT \
  { sizeof(annulus_warm_failure), NULL, NULL, NULL, 0 }

// Stores a failure of the last completed annulus_warm_work_run() of this work. Its texts live until
// the next run, or until the work is destroyed.
ANNULUS_EXPORT annulus_status annulus_warm_work_get_failure(annulus_warm_work* work, size_t index,
                                                            annulus_warm_failure* failure);

// ---- Folders of compiled kernels (annulus/kernels.h)

// The C form of annulus::PruneOptions.
typedef struct annulus_prune_options {
  size_t struct_size;
  const char* folder;         // null: as in annulus_device_options.cache_dir
  double older_than_seconds;  // remove kernels older than this; negative: no limit of age
  int64_t max_bytes;          // then remove the oldest above this total; negative: no limit
  int32_t useless;            // 0 or 1: remove kernels that no device of this machine can use
  int32_t dry_run;            // 0 or 1: only count
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

// Calls annulus::prune_kernels. `problems` (may be null) lists files that were not removable.
ANNULUS_EXPORT annulus_status annulus_kernels_prune(const annulus_prune_options* options,
                                                    annulus_prune_result* result,
                                                    annulus_text** problems);

// The C form of annulus::VerifyResult.
typedef struct annulus_verify_result {
  size_t struct_size;
  int64_t kernels;  // intact kernels
  int64_t bytes;
  int64_t damaged;
} annulus_verify_result;
#define ANNULUS_VERIFY_RESULT_INIT \
  { sizeof(annulus_verify_result), 0, 0, 0 }

// Calls annulus::verify_kernels. A null folder is as in annulus_device_options.cache_dir.
// `damaged`, which may be null, receives lines: a file that no device can use, ": ", and why. With
// remove 1 these files are removed.
ANNULUS_EXPORT annulus_status annulus_kernels_verify(const char* folder, int32_t remove,
                                                     annulus_verify_result* result,
                                                     annulus_text** damaged);

// ---- The installation (annulus/kernels.h): libraries, devices, and the default device
//
//   annulus_installation* installation = NULL;
//   annulus_library_report nvrtc = ANNULUS_LIBRARY_REPORT_INIT;
//   annulus_installation_examine(NULL, &installation);
//   annulus_installation_get_library(installation, ANNULUS_LIBRARY_NVRTC, &nvrtc);
//   if (!nvrtc.usable) report(nvrtc.problem);

typedef struct annulus_installation annulus_installation;

// Examines everything once: the libraries, the devices of the CUDA driver, which it initialises,
// and a folder of compiled kernels (null: as in annulus_device_options), which it creates if it is
// missing. Opens no device. Missing or unfit parts are results, not errors.
ANNULUS_EXPORT annulus_status annulus_installation_examine(const char* cache_dir,
                                                           annulus_installation** installation);
ANNULUS_EXPORT annulus_status annulus_installation_destroy(annulus_installation* installation);

typedef struct annulus_installation_info {
  size_t struct_size;
  // The device that annulus_device_open opens without a name, and why. The name is empty if
  // ANNULUS_DEVICE is not a device; then the reason is the error.
  const char* default_device;
  const char* default_reason;
  const char* device_problem;  // why there are no devices; empty if there are some
  const char* cache_dir;       // empty: no kernel is kept on disk
  const char* cache_problem;   // why the folder is not used; empty if it is used
  size_t devices;              // number of devices of the CUDA driver
  int64_t cached_kernels;
  int64_t cached_bytes;
  int64_t cache_usable;  // 0 or 1
  // Lines: the number of kernels, ": ", and their origin (annulus_device_info.kernel_origin).
  const char* cached_origins;
  // Lines: an existing folder of kernels compiled ahead (annulus_device_options.kernels_path), ":
  // ", and the number of kernels, or why the folder is not used.
  const char* kernel_folders;
} annulus_installation_info;
#define ANNULUS_INSTALLATION_INFO_INIT \
  { sizeof(annulus_installation_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL }

ANNULUS_EXPORT annulus_status annulus_installation_get(annulus_installation* installation,
                                                       annulus_installation_info* info);

// The libraries of annulus::LibraryReports.
typedef enum annulus_library {
  ANNULUS_LIBRARY_CUDA = 0,       // the driver: devices named cuda:N need it
  ANNULUS_LIBRARY_SIMULATOR = 1,  // devices named sim:... need it
  ANNULUS_LIBRARY_NVRTC = 2,      // both need it
  ANNULUS_LIBRARY_NCCL = 3        // rings of several GPUs need it
} annulus_library;

// The C form of annulus::LibraryReport.
typedef struct annulus_library_report {
  size_t struct_size;
  const char* name;          // "the CUDA driver", "NVRTC", ...
  const char* path;          // the file that was opened; empty: none
  const char* version_text;  // "13.0"
  const char* problem;       // the defect and the remedy; empty: usable
  const char* absent;        // lines: optional symbols that it lacks
  const char* tried;         // lines: a place where it was searched, ": ", and the outcome
  int32_t version;           // number from the library; 0: not queried
  int32_t usable;            // 0 or 1
  int64_t simulated;         // 0 or 1: it belongs to the simulator
} annulus_library_report;
#define ANNULUS_LIBRARY_REPORT_INIT \
  { sizeof(annulus_library_report), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_library(annulus_installation* installation,
                                                               int32_t library,
                                                               annulus_library_report* report);

// The C form of annulus::ListedDevice: a device as its driver describes it.
typedef struct annulus_listed_device {
  size_t struct_size;
  const char* name;            // the name for annulus_device_options
  const char* description;     // the driver's name of the device
  int32_t compute_capability;  // 80, 90, ...
  int32_t simulated;           // 0 or 1: from a simulator that replaces libcuda.so.1
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
} annulus_listed_device;
#define ANNULUS_LISTED_DEVICE_INIT \
  { sizeof(annulus_listed_device), NULL, NULL, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_device(annulus_installation* installation,
                                                              size_t index,
                                                              annulus_listed_device* device);

// ---- States in host memory (annulus/problem.h)

// The version of the definition of acc, m and l. States of different versions do not merge.
#define ANNULUS_STATE_VERSION 1

// The C form of annulus::HostState.

typedef struct annulus_host_state {
  size_t struct_size;
  int64_t version;  // ANNULUS_STATE_VERSION
  int64_t rows;
  int64_t dim_v;
  float* acc;  // [rows, dim_v]
  float* m;    // [rows]
  float* l;    // [rows]; 0 if no key was visible
} annulus_host_state;
#define ANNULUS_HOST_STATE_INIT \
  { sizeof(annulus_host_state), ANNULUS_STATE_VERSION, 0, 0, NULL, NULL, NULL }

// Writes the state of no keys.
ANNULUS_EXPORT annulus_status annulus_state_clear(const annulus_host_state* state);
// Calls annulus::merge: writes the state of the union of both key sets, which must be disjoint, to
// the arrays of `into`. `into` has the rows and dim_v of both, and may be either of them.
ANNULUS_EXPORT annulus_status annulus_state_merge(const annulus_host_state* a,
                                                  const annulus_host_state* b,
                                                  const annulus_host_state* into);
// Writes O, [rows, dim_v], and LSE, [rows], in the base `lse_base`. An empty row gives 0 and -inf.
ANNULUS_EXPORT annulus_status annulus_state_finish(const annulus_host_state* state,
                                                   int32_t lse_base, float* o, float* lse);

// ---- The oracle (annulus/oracle.h). It reads the caller's host memory and needs no device.
//
//   annulus_reference_create(&problem, &inputs, NULL, &reference);
//   annulus_reference_compare(reference, &result, &made);
//   if (!made.within_tolerance) report(made.first_wrong);

// The C form of annulus::HostInputs.
typedef struct annulus_host_inputs {
  size_t struct_size;
  const void* q;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k;  // [B, Sk, Hkv, Dqk]
  const void* v;  // [B, Sk, Hkv, Dv]
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  const annulus_host_state* state_in;  // B H Sq rows, with carry_in
  const float* scale_q;                // scales with e4m3, see annulus_operands
  const float* scale_k;
  const float* scale_v;
  int64_t broadcast_rows;  // 0 or 1, see annulus_operands
} annulus_host_inputs;
#define ANNULUS_HOST_INPUTS_INIT                                                                \
  {                                                                                             \
    sizeof(annulus_host_inputs), NULL, NULL, NULL, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, NULL, NULL, \
        NULL, NULL, 0                                                                           \
  }

// Called with the share of the rows that is done, on one thread at a time, not always the caller's.
typedef void (*annulus_oracle_callback)(void* user, double share);

// The C form of annulus::ReferenceOptions.
typedef struct annulus_reference_options {
  size_t struct_size;
  // If B H Sq Sk exceeds max_pairs, only some rows are computed: the first and the last tile_rows
  // of every (batch, head), and sampled_rows more, drawn from the seed.
  int64_t max_pairs;
  int64_t tile_rows;
  int64_t sampled_rows;
  uint64_t seed;
  int64_t threads;                   // 0: one for each processor of this process
  annulus_oracle_callback progress;  // null: no callback
  void* progress_user;
} annulus_reference_options;
#define ANNULUS_REFERENCE_OPTIONS_INIT \
  { sizeof(annulus_reference_options), INT64_C(1) << 31, 128, 256, 0, 0, NULL, NULL }

typedef struct annulus_reference annulus_reference;

// Calls annulus::reference.
ANNULUS_EXPORT annulus_status annulus_reference_create(const annulus_problem* problem,
                                                       const annulus_host_inputs* inputs,
                                                       const annulus_reference_options* options,
                                                       annulus_reference** reference);
ANNULUS_EXPORT annulus_status annulus_reference_destroy(annulus_reference* reference);

// The C form of annulus::Reference: the exact result. The arrays belong to the handle.
typedef struct annulus_reference_rows {
  size_t struct_size;
  int64_t count;  // rows; B H Sq if `sampled` is 0
  int64_t dim_v;
  const int64_t* rows;     // (b H + h) Sq + i, ascending
  const double* o;         // [count, dim_v]; 0 in empty rows
  const double* m;         // [count], base 2; -inf in empty rows
  const double* l;         // [count]; 0 in empty rows
  const uint8_t* tainted;  // [count]: 1 if the row reads an operand that is not finite
  int32_t sampled;         // 0 or 1
} annulus_reference_rows;
#define ANNULUS_REFERENCE_ROWS_INIT \
  { sizeof(annulus_reference_rows), 0, 0, NULL, NULL, NULL, NULL, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_reference_get(annulus_reference* reference,
                                                    annulus_reference_rows* rows);

// The C form of annulus::HostResult: the outputs of a kernel in host memory.
typedef struct annulus_host_result {
  size_t struct_size;
  const uint16_t* o;  // [B, Sq, H, Dv] in the order of o_strides, bits of the output dtype
  annulus_strides o_strides;
  const float* lse;  // [B, H, Sq] contiguous, in the problem's base; null: not checked
  const annulus_host_state* state;  // the state instead, with carry_out
  const uint8_t* excused;  // [B, H, Sq]: 1 for rows to skip (annulus_problem_reached_rows), or null
} annulus_host_result;
#define ANNULUS_HOST_RESULT_INIT \
  { sizeof(annulus_host_result), NULL, {0, 0, 0}, NULL, NULL, NULL }

// The C form of annulus::Tolerance.
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

// The C form of annulus::Comparison. Infinity marks an error that no tolerance allows.
typedef struct annulus_comparison {
  size_t struct_size;
  double error_row_max;
  double error_o;
  double error_lse;  // 0 without LSE; the error of m + log2(l) with a carried state
  int64_t checked_rows;
  int64_t tainted_rows;      // rows that were not compared: they read an operand not finite
  int64_t wrong_rows;        // rows beyond the tolerance of a row or of an LSE
  int32_t within_tolerance;  // 0 or 1; also 1 if no row was compared: check checked_rows
  char first_wrong[252];     // position and values of the first wrong row; empty: none
} annulus_comparison;
#define ANNULUS_COMPARISON_INIT                                  \
  {                                                              \
    sizeof(annulus_comparison), 0.0, 0.0, 0.0, 0, 0, 0, 0, { 0 } \
  }

// Calls annulus::compare. Differences are not an error of the call: check `comparison`.
ANNULUS_EXPORT annulus_status annulus_reference_compare(annulus_reference* reference,
                                                        const annulus_host_result* result,
                                                        annulus_comparison* comparison);

// Calls annulus::reached_rows: writes reached [B, H, Sq], 1 if a NaN or an infinity in an operand
// may reach the row. tile_rows and tile_columns are the tile sizes of the plan.
ANNULUS_EXPORT annulus_status annulus_problem_reached_rows(const annulus_problem* problem,
                                                           const annulus_host_inputs* inputs,
                                                           int64_t tile_rows, int64_t tile_columns,
                                                           uint8_t* reached);

// ---- Shapes, words and presets

// Calls annulus::Device::flush_shape_log.
ANNULUS_EXPORT annulus_status annulus_device_flush_shape_log(annulus_device* device);

// The C form of annulus::PatternWord. The texts live as long as the library.
typedef struct annulus_pattern_word {
  size_t struct_size;
  const char* name;     // "window"
  const char* form;     // the word with its arguments: "window(left, right)"
  const char* meaning;  // one line
} annulus_pattern_word;
#define ANNULUS_PATTERN_WORD_INIT \
  { sizeof(annulus_pattern_word), NULL, NULL, NULL }

ANNULUS_EXPORT size_t annulus_pattern_word_count(void);
// An index of annulus_pattern_word_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_pattern_word_get(size_t index, annulus_pattern_word* word);

// The C form of annulus::PresetInfo. The texts live as long as the library.
typedef struct annulus_preset {
  size_t struct_size;
  const char* name;
  const char* expression;
  double density_4096;  // density of 12 heads at Sq = Sk = 4096
  double density_16384;
  double density_65536;
} annulus_preset;
#define ANNULUS_PRESET_INIT \
  { sizeof(annulus_preset), NULL, NULL, 0.0, 0.0, 0.0 }

ANNULUS_EXPORT size_t annulus_preset_count(void);
// An index of annulus_preset_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_preset_get(size_t index, annulus_preset* preset);

// ---- Recall (annulus/selection.h)

typedef struct annulus_recall_meter annulus_recall_meter;

// `problem` is the judged runs' with want_lse. Any number of threads may run a meter at a time.
ANNULUS_EXPORT annulus_status annulus_recall_meter_create(annulus_device* device,
                                                          const annulus_problem* problem,
                                                          const annulus_plan_options* options,
                                                          annulus_recall_meter** meter);
ANNULUS_EXPORT annulus_status annulus_recall_meter_destroy(annulus_recall_meter* meter);
// Stores the bytes of scratch memory of a run, 16-byte aligned, separate for concurrent runs.
ANNULUS_EXPORT annulus_status annulus_recall_meter_workspace_bytes(annulus_recall_meter* meter,
                                                                   size_t* bytes);
// Writes recall, fp32 [B, H, Sq] in device memory, asynchronously (see annulus::RecallMeter::run).
ANNULUS_EXPORT annulus_status annulus_recall_meter_run(annulus_recall_meter* meter, void* stream,
                                                       const annulus_operands* operands,
                                                       float* recall, void* workspace);
// Computes the mean and the least of recalls in host memory; both are 1 if there are none.
ANNULUS_EXPORT annulus_status annulus_recall_summarise(const float* recall, size_t count,
                                                       double* mean, double* least);

// ---- Problems and predictions

// Calls annulus::supported_dims: the head dims that kernels exist for, ascending.
ANNULUS_EXPORT size_t annulus_dims_count(void);
// An index of annulus_dims_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_dims_get(size_t index, int64_t* dim_qk, int64_t* dim_v);

// Calls annulus::pair_density. Needs no device.
ANNULUS_EXPORT annulus_status annulus_problem_density(const annulus_problem* problem,
                                                      const annulus_work_limit* limit,
                                                      double* density);

enum { ANNULUS_MAX_PIPES = 8 };

// One pipe of a multiprocessor, or a memory transfer.
typedef struct annulus_pipe {
  const char* name;  // "tensor cores", ...; lives as long as the library
  double busy;       // the share of the time in which it is busy, on an average multiprocessor
} annulus_pipe;

// The C form of annulus::PlanPrediction.
typedef struct annulus_prediction {
  size_t struct_size;
  double micros;      // infinite if not even one CTA fits
  const char* limit;  // the bottleneck; lives as long as the library
  size_t pipe_count;
  annulus_pipe pipes[ANNULUS_MAX_PIPES];
  // The range of the time if each constant of the model is anywhere in its own interval.
  double min_micros;
  double max_micros;
} annulus_prediction;
#define ANNULUS_PREDICTION_INIT \
  { sizeof(annulus_prediction), 0.0, NULL, 0, {{NULL, 0.0}}, 0.0, 0.0 }

// Calls annulus::Plan::predict: computed anew in each call.
ANNULUS_EXPORT annulus_status annulus_plan_predict(annulus_plan* plan,
                                                   annulus_prediction* prediction);

// ---- Counters and simulation

// A counter of a simulated device since it was opened or cleared. A GPU has no counters.
typedef struct annulus_counter {
  const char* name;  // "launches", "warp_instructions", ...; lives as long as the device's handle
  uint64_t value;
} annulus_counter;

// Stores the first `capacity` counters, in a fixed order, and the number of all counters in *count.
// With `clear` 1 all are reset to 0.
ANNULUS_EXPORT annulus_status annulus_device_get_counters(annulus_device* device, int32_t clear,
                                                          annulus_counter* counters,
                                                          size_t capacity, size_t* count);

// Calls annulus::Device::list_counters: lists of tiles that were made on the host, and lists that
// were uploaded. Either pointer may be null.
ANNULUS_EXPORT annulus_status annulus_device_get_list_counters(annulus_device* device,
                                                               annulus_cache_counters* on_host,
                                                               annulus_cache_counters* on_device);

// The simulation_* fields of annulus_device_options, for an open device.
typedef struct annulus_simulation {
  size_t struct_size;
  uint64_t seed;
  int64_t threads;
  int32_t checked;  // 0 or 1
} annulus_simulation;
#define ANNULUS_SIMULATION_INIT \
  { sizeof(annulus_simulation), 0, 0, 1 }

// Calls annulus::Device::set_simulation.
ANNULUS_EXPORT annulus_status annulus_device_set_simulation(annulus_device* device,
                                                            const annulus_simulation* simulation);

// ---- Traces (annulus/observe.h)

// Starts recording and keeps the newest max_spans spans: 1 to 2^24, or 65,536 for 0.
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

// The recorded spans in the Trace Event Format: as a text, and as a file.
ANNULUS_EXPORT annulus_status annulus_trace_json(annulus_text** text);
ANNULUS_EXPORT annulus_status annulus_trace_write(const char* path);

// ---- Layouts (annulus/layout.h)

// The C form of annulus::LayoutStatistics, and the additional fields of annulus::PatternStatistics.
typedef struct annulus_layout_statistics {
  size_t struct_size;
  int64_t rows;     // ceil(Sq / R)
  int64_t columns;  // ceil(Sk / C)
  int64_t heads;    // H; 1: any number
  int64_t distinct_heads;
  int64_t kept;          // kept blocks of the distinct heads
  int64_t partial;       // partial blocks among them
  double block_density;  // density of all query heads
  // Numbers of blocks in a row or column of a distinct head; means include empty ones.
  int64_t shortest_row;
  int64_t longest_row;
  int64_t empty_rows;
  int64_t shortest_column;
  int64_t longest_column;
  int64_t empty_columns;
  double row_imbalance;     // longest row over mean row: 1 is even; 0 if nothing is kept
  double column_imbalance;  // longest column over mean column
  double mean_distance;     // mean tokens between a kept block and the diagonal, 0 on it
  int64_t bytes;            // bytes of the arrays
  // Only from annulus_pattern_statistics, else 0: the exact density of visible pairs, and the
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
// Counts the blocks of a pattern, and its pairs one by one. `options` are as in
// annulus_layout_make; the device is ignored.
ANNULUS_EXPORT annulus_status annulus_pattern_statistics(const char* pattern,
                                                         const annulus_block_layout* blocks,
                                                         const annulus_layout_sizes* sizes,
                                                         const annulus_layout_options* options,
                                                         annulus_layout_statistics* statistics);

// Calls annulus::reachability: writes shares [layers].
ANNULUS_EXPORT annulus_status annulus_layout_reachability(annulus_layout* layout, int32_t layers,
                                                          double* shares);

// Draws the layout.
ANNULUS_EXPORT annulus_status annulus_layout_picture(annulus_layout* layout,
                                                     const annulus_picture_options* options,
                                                     annulus_text** picture);

// The C form of annulus::LayoutDifference.
typedef struct annulus_layout_difference {
  size_t struct_size;
  int64_t only_first;  // blocks kept only by the first, over all query heads
  int64_t only_second;
  int64_t flags;       // blocks kept by both but partial in one
  int32_t same_sizes;  // 0: the counts are 0, and the text names the different sizes
} annulus_layout_difference;
#define ANNULUS_LAYOUT_DIFFERENCE_INIT \
  { sizeof(annulus_layout_difference), 0, 0, 0, 1 }

// Calls annulus::difference. `text`, which may be null, receives at most max_lines lines, one for
// each row of blocks with differences; empty: no difference.
ANNULUS_EXPORT annulus_status annulus_layout_compare(annulus_layout* first, annulus_layout* second,
                                                     int64_t max_lines,
                                                     annulus_layout_difference* difference,
                                                     annulus_text** text);

// ---- Texts and pictures

// "under way", "good", "void"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_run_state_text(int state);

// "opened", "slow", "gone", "given up"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_communicator_event_text(int kind);

// The schedule as an SVG document: a row for each rank, a column for each step.
ANNULUS_EXPORT annulus_status annulus_ring_get_picture(annulus_ring* ring, const char** svg);

// Calls annulus::with_density. `within` may be null.
ANNULUS_EXPORT annulus_status annulus_layout_with_density(annulus_layout* layout, double density,
                                                          annulus_layout* within,
                                                          annulus_layout** result);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_TOOLS_H_
