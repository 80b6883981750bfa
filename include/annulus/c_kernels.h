#ifndef ANNULUS_C_KERNELS_H_
#define ANNULUS_C_KERNELS_H_

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
//   annulus_warm(work, &options, &result);       seconds to minutes

#include "annulus/c.h"
#include "annulus/c_batch.h"
#include "annulus/c_pattern.h"
#include "annulus/c_selection.h"

#ifdef __cplusplus
extern "C" {
#endif

// A problem as a line of a file of shapes, which `annulus warm` reads. Null options are the
// defaults.
ANNULUS_EXPORT annulus_status annulus_shape_line(const annulus_problem* problem,
                                                 const annulus_plan_options* options,
                                                 annulus_text** text);

// Lines: the GPUs that kernels can be compiled for without one: name, ", ", architecture, ": ", and
// a description.
ANNULUS_EXPORT annulus_status annulus_known_gpus(annulus_text** text);

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
  // annulus_device_options.name; a GPU of annulus_known_gpus by name; or an architecture, which is
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
ANNULUS_EXPORT annulus_status annulus_warm(annulus_warm_work* work,
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

// Tells a failure of the last annulus_warm() with this work that ended. Its texts stay until the
// next one, or until the work is destroyed.
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
ANNULUS_EXPORT annulus_status annulus_prune_kernels(const annulus_prune_options* options,
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
ANNULUS_EXPORT annulus_status annulus_verify_kernels(const char* folder, int32_t remove,
                                                     annulus_verify_result* result,
                                                     annulus_text** damaged);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_KERNELS_H_
