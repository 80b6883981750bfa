#ifndef ANNULUS_C_TUNE_H_
#define ANNULUS_C_TUNE_H_

// The C interface of tuning: annulus/tune.h, whose declarations have the full meaning. The
// conventions are at the top of annulus/c.h.
//
//   annulus_tuning_create(device, &problem, NULL, &tuning);     // seconds to minutes
//   annulus_tuning_get(tuning, &result);               // annulus_plan_create uses it from now on

#include "annulus/c.h"
#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

// The C form of annulus::TuneProgress. Texts are valid during the callback.
typedef struct annulus_tune_progress {
  size_t struct_size;
  int64_t done;         // candidates that were tried or dropped
  int64_t candidates;   // candidates of the whole space; most searches end long before
  const char* config;   // the last candidate
  const char* outcome;  // its outcome
  const char* best;     // the best candidate so far
  double best_ratio;    // its time over the time of the heuristic's choice
  double seconds;       // time since the beginning of the call
  int64_t most;         // candidates after which the search ends by itself
} annulus_tune_progress;

// Called on the thread that called the library.
typedef void (*annulus_tune_callback)(void* user, const annulus_tune_progress* progress);

// The C form of annulus::TuneOptions.
typedef struct annulus_tune_options {
  size_t struct_size;
  double time_limit_seconds;  // the search then ends with the best so far; 0: no limit
  // Ends the search soon after it is no longer 0. Another thread sets it with an atomic store; a
  // signal handler and the callback may assign it. It must outlive the call. Null: no flag.
  const volatile int32_t* cancel;
  annulus_tune_callback progress;  // null: no callback
  void* progress_user;
  uint64_t seed;         // seed of the operands
  int32_t exhaustive;    // 0 or 1: try the whole space
  int32_t force;         // 0 or 1: search again and replace the stored result
  int32_t dry_run;       // 0 or 1: only list the candidates; run and write nothing
  int32_t cold_cache;    // 0 or 1: empty L2 before each launch whose time decides
  int32_t keep_journal;  // 0 or 1: keep the journal of a search that ends by itself
  // Tune plans with this selection; null: plans without one. Not for annulus_tuning_create_batch.
  const annulus_selection* selection;
} annulus_tune_options;
#define ANNULUS_TUNE_OPTIONS_INIT \
  { sizeof(annulus_tune_options), 0.0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL }

typedef struct annulus_tuning annulus_tuning;

// Calls annulus::tune. Blocks the calling thread.
ANNULUS_EXPORT annulus_status annulus_tuning_create(annulus_device* device,
                                                    const annulus_problem* problem,
                                                    const annulus_tune_options* options,
                                                    annulus_tuning** tuning);

// The C form of annulus::StepRequests: a group of equal requests in a step.
typedef struct annulus_step_requests {
  int64_t requests;  // the number of requests in the group
  int64_t queries;   // queries of each
  int64_t keys;      // keys of each
} annulus_step_requests;
#define ANNULUS_STEP_REQUESTS_INIT \
  { 1, 1, 1 }

// The number of classes of requests: few queries and many queries.
#define ANNULUS_REQUEST_CLASSES 2

// Calls annulus::tune_batch, with one time limit for all searches. With `step_count` 0 the step is
// made from the bounds. Stores a tuning for each searched class in `tunings`, in the order of
// annulus_batch_plan_info.config, and their number in *count; destroy each of them. `room`, the
// size of `tunings`, must be at least the number of classes within the bounds;
// ANNULUS_REQUEST_CLASSES suffices. After an error there are no tunings, but a class whose search
// had ended keeps its result.
ANNULUS_EXPORT annulus_status annulus_tuning_create_batch(
    annulus_device* device, const annulus_batch_problem* problem, const annulus_step_requests* step,
    size_t step_count, const annulus_tune_options* options, annulus_tuning** tunings, size_t room,
    size_t* count);
ANNULUS_EXPORT annulus_status annulus_tuning_destroy(annulus_tuning* tuning);

// The C form of annulus::TuneStatus.
typedef enum annulus_tune_status {
  ANNULUS_TUNED = 0,          // the search ended by itself
  ANNULUS_TUNE_PARTIAL = 1,   // a limit or the caller ended the search; a later call searches again
  ANNULUS_TUNED_ALREADY = 2,  // there was a result, and nothing was run
  ANNULUS_TUNE_PLANNED = 3    // a dry run
} annulus_tune_status;

// The C form of annulus::TuneResult.
typedef struct annulus_tune_result {
  size_t struct_size;
  const char* shape;           // the kind of problem
  const char* config;          // the configuration that annulus_plan_create uses from now on
  const char* default_config;  // the heuristic's choice
  const char* runner_up;       // empty if there is none
  const char* path;            // the result's file; empty if the result is only in memory
  const char* problem;         // why the result is only in memory although a folder was given
  double time;                 // median time of config: cycles if predicted, else microseconds
  double default_time;         // median time of default_config in the same rounds
  double ratio;                // time over default_time
  double ratio_low;            // 95 % interval of the ratio
  double ratio_high;
  double seconds;      // duration of the call
  int64_t candidates;  // candidates of the space
  int64_t tried;       // 0: the search ended before the first candidate, and there are no times
  int64_t dropped;
  size_t trials;      // count for annulus_tuning_get_trial; 0 for ANNULUS_TUNED_ALREADY
  int32_t status;     // annulus_tune_status
  int32_t predicted;  // 0 or 1: times are predicted cycles
  // If `problem` is not empty, the unwritten file: its name below a folder of results, and its
  // text.
  const char* file_name;
  const char* file;
  const char* journal;      // the journal of the search; empty if there is none
  int64_t resumed;          // candidates that were taken from the journal of an earlier search
  double other_ratio;       // the median ratio in the other state of L2; 0 if it was not measured
  int64_t repeated_rounds;  // rounds that were repeated because the device was slow
  int32_t slowed;           // 0 or 1: the device stayed slow
} annulus_tune_result;
#define ANNULUS_TUNE_RESULT_INIT                                                                   \
  {                                                                                                \
    sizeof(annulus_tune_result), NULL, NULL, NULL, NULL, NULL, NULL, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, \
        0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0.0, 0, 0                                           \
  }

ANNULUS_EXPORT annulus_status annulus_tuning_get(annulus_tuning* tuning,
                                                 annulus_tune_result* result);

// The C form of annulus::TuneCandidate: one configuration of the space.
typedef struct annulus_tune_trial {
  size_t struct_size;
  const char* config;
  const char* outcome;  // "tried", "not tried", or why it was dropped
  double model_cycles;  // predicted from the plan alone; decides the order of the search
  double time;          // median if it was tried, in the result's unit
  double ratio;         // median over the rounds of its time over the heuristic choice's time
} annulus_tune_trial;
#define ANNULUS_TUNE_TRIAL_INIT \
  { sizeof(annulus_tune_trial), NULL, NULL, 0.0, 0.0, 0.0 }

ANNULUS_EXPORT annulus_status annulus_tuning_get_trial(annulus_tuning* tuning, size_t index,
                                                       annulus_tune_trial* trial);

// ---- Background tuning

// The callbacks receive `user` of the options, on the tuning thread. They must destroy neither the
// tuning nor the device. annulus::BackgroundTuningOptions has the promises of the host.
typedef int32_t (*annulus_may_measure_callback)(void* user);  // returns 0 or 1
typedef void (*annulus_measured_callback)(void* user);
// The texts of the result are valid during the callback; it has no trials.
typedef void (*annulus_tuned_callback)(void* user, const annulus_tune_result* result);

// The C form of annulus::BackgroundTuningOptions.
typedef struct annulus_background_tuning_options {
  size_t struct_size;
  // The problems to tune. Without problems and batches: what the device plans.
  const annulus_problem* const* problems;
  size_t problem_count;
  annulus_may_measure_callback may_measure;  // null: measurements are always allowed
  annulus_measured_callback measured;        // null: no callback
  annulus_tune_callback progress;            // null: no callback
  annulus_tuned_callback tuned;              // null: no callback
  annulus_execute_callback execute;          // receives one task; null: a thread of the library
  void* user;                                // passed to all of these callbacks
  double ask_again_seconds;   // time until may_measure is called again after 0; more than 0
  double time_limit_seconds;  // limit of the work on one problem, without waits; 0: no limit
  int64_t threads;            // threads that compute the oracle's results; 0: one per processor
  // The batches to tune after the problems; `tuned` is called for each class of requests.
  const annulus_batch_problem* const* batches;
  size_t batch_count;
} annulus_background_tuning_options;
#define ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT                                                    \
  {                                                                                               \
    sizeof(annulus_background_tuning_options), NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0.01, \
        0.0, 1, NULL, 0                                                                           \
  }

typedef struct annulus_background_tuning annulus_background_tuning;

// Makes an annulus::BackgroundTuning. Closing the device ends it but keeps the handle.
ANNULUS_EXPORT annulus_status annulus_background_tuning_create(
    annulus_device* device, const annulus_background_tuning_options* options,
    annulus_background_tuning** tuning);
// Waits for the measurement or compilation in progress. Afterwards no callback is called.
ANNULUS_EXPORT annulus_status annulus_background_tuning_destroy(annulus_background_tuning* tuning);
// Each pause needs its resume. Pausing waits for a measurement in progress.
ANNULUS_EXPORT annulus_status annulus_background_tuning_pause(annulus_background_tuning* tuning);
ANNULUS_EXPORT annulus_status annulus_background_tuning_resume(annulus_background_tuning* tuning);
// Waits until nothing is left to tune, for at most `seconds`, or without limit if negative. *done
// is 0 if the time ran out, else 1; `done` may be null.
ANNULUS_EXPORT annulus_status annulus_background_tuning_wait(annulus_background_tuning* tuning,
                                                             double seconds, int32_t* done);
// Ends the tuning soon, without waiting.
ANNULUS_EXPORT annulus_status annulus_background_tuning_cancel(annulus_background_tuning* tuning);

typedef enum annulus_background_tuning_state {
  ANNULUS_BACKGROUND_TUNING = 0,
  ANNULUS_BACKGROUND_TUNING_PAUSED = 1,
  ANNULUS_BACKGROUND_TUNING_IDLE = 2,  // everything planned so far is tuned
  ANNULUS_BACKGROUND_TUNING_ENDED = 3  // all given problems and batches are tuned, or cancelled
} annulus_background_tuning_state;

// The C form of annulus::BackgroundTuningStatus.
typedef struct annulus_background_tuning_status {
  size_t struct_size;
  int64_t state;           // ANNULUS_BACKGROUND_TUNING_*
  int64_t tuned;           // searches that ended by themselves
  int64_t partial;         // searches that a limit or the end interrupted
  int64_t already_there;   // problems, and classes of batches, that had a complete result
  int64_t failed;          // problems and batches that failed
  int64_t measurements;    // measurements that began
  int64_t refusals;        // calls of may_measure that returned 0
  const char* last_error;  // the last error, which lives as long as the handle
} annulus_background_tuning_status;
#define ANNULUS_BACKGROUND_TUNING_STATUS_INIT \
  { sizeof(annulus_background_tuning_status), 0, 0, 0, 0, 0, 0, 0, NULL }

ANNULUS_EXPORT annulus_status annulus_background_tuning_get_status(
    annulus_background_tuning* tuning, annulus_background_tuning_status* status);

// ---- Stored results

// The C form of annulus::TunedEntry.
typedef struct annulus_tuned_entry {
  size_t struct_size;
  const char* path;    // its file, or its pack
  const char* device;  // the chip on which it was found
  const char* shape;   // its problems, with the ranges of their lengths
  const char* config;
  const char* runner_up;
  double time;  // cycles if predicted, else microseconds
  double default_time;
  double ratio_low;
  double ratio_high;
  int64_t rounds;
  int64_t candidates;
  int64_t when;   // seconds since 1970
  int64_t batch;  // this and the next four describe the problem that was measured
  int64_t heads;
  int64_t kv_heads;
  int64_t seq_q;
  int64_t seq_k;
  int32_t predicted;        // 0 or 1
  int32_t complete;         // 0 or 1
  int32_t library_version;  // annulus_version() of its build
  int32_t driver_version;
  const char* kind;            // its problems without lengths and heads: "D64 bf16, causal, ..."
  const char* name;            // unique on its device: "<32 hex digits>-wgmma3"
  const char* outdated;        // why no device uses it with this build; empty: usable
  const char* default_config;  // the heuristic's choice, with which it was compared
  const char* pattern;         // pattern of the problem; empty if it names a file or is long
  int32_t packed;              // 0 or 1: it is in a pack
  int32_t nvrtc_version;       // 13000 is 13.0
  int32_t clock_mhz;           // clock rates from the driver
  int32_t memory_clock_mhz;
  double other_ratio;       // see annulus_tune_result
  int64_t repeated_rounds;  // see annulus_tune_result
  int32_t cold_cache;       // 0 or 1: L2 was emptied before each launch
} annulus_tuned_entry;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_TUNE_H_
