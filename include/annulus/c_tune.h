#ifndef ANNULUS_C_TUNE_H_
#define ANNULUS_C_TUNE_H_

// The C interface of tuning: annulus/tune.h explains what a search does and where results are kept.
// The conventions are those at the top of annulus/c.h.
//
//   annulus_tuning_create(device, &problem, NULL, &tuning);     seconds to minutes
//   annulus_tuning_get(tuning, &result);               annulus_plan_create uses it from now on

#include "annulus/c.h"
#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

// The progress of a call. Texts live as long as the callback runs.
typedef struct annulus_tune_progress {
  size_t struct_size;
  int64_t done;         // candidates that were tried or dropped
  int64_t candidates;   // of the whole space; most searches end long before
  const char* config;   // the last one
  const char* outcome;  // what came of it
  const char* best;     // so far
  double best_ratio;    // its time over that of the heuristic's choice
  double seconds;       // since the call
  int64_t most;         // candidates that may be tried or dropped before the search ends by itself
} annulus_tune_progress;

// Called on the thread that called annulus_tune.
typedef void (*annulus_tune_callback)(void* user, const annulus_tune_progress* progress);

typedef struct annulus_tune_options {
  size_t struct_size;
  double time_limit_seconds;  // the search then ends with the best so far; 0: no limit
  // Ends the search as the time limit does, soon after it is no longer 0. Another thread sets it
  // with an atomic store; a signal handler and the callback may just assign. Null: none. Must
  // outlive the call.
  const volatile int32_t* cancel;
  annulus_tune_callback progress;  // null: none
  void* progress_user;
  uint64_t seed;       // seed of the operands
  int32_t exhaustive;  // 0 or 1: try the whole space
  int32_t force;       // 0 or 1: search again and replace the result that is stored
  int32_t dry_run;     // 0 or 1: only list what would be tried; run and write nothing
  // 0 or 1: empty L2 before each launch whose time decides; the finalists are measured in the other
  // state too
  int32_t cold_cache;
  // 0 or 1: keep the journal of a search that ends by itself, which otherwise removes it
  int32_t keep_journal;
  // Of plans with a selection (annulus_plan_options): the attention is tuned, with blocks drawn for
  // it. Null: of plans without one. Not for annulus_tuning_create_batch.
  const annulus_selection* selection;
} annulus_tune_options;

#define ANNULUS_TUNE_OPTIONS_INIT \
  { sizeof(annulus_tune_options), 0.0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL }

typedef struct annulus_tuning annulus_tuning;

// Blocks the calling thread and uses the default stream; nothing else should run on the device
// meanwhile, and nothing may on a simulated one. Null options are the defaults. Errors are those of
// annulus_plan_create; ANNULUS_INVALID_ARGUMENT where there is nothing to launch; ANNULUS_FILE
// where no folder of the given path can be written to; ANNULUS_FAULT where a candidate faulted on a
// GPU, whose context is lost then.
ANNULUS_EXPORT annulus_status annulus_tuning_create(annulus_device* device,
                                                    const annulus_problem* problem,
                                                    const annulus_tune_options* options,
                                                    annulus_tuning** tuning);

// Requests of a step whose time decides between configurations of a batch's kernels.
typedef struct annulus_step_requests {
  int64_t requests;  // as many as these
  int64_t queries;
  int64_t keys;
} annulus_step_requests;

#define ANNULUS_STEP_REQUESTS_INIT \
  { 1, 1, 1 }

// How many classes of requests there are: those with few queries and those with many.
#define ANNULUS_REQUEST_CLASSES 2

// Tunes the kernels of a batch, as tune_batch() of annulus/tune.h does, which explains the step:
// one search for each class of requests that `step` has, or, where `step_count` is 0, that is
// within the bounds. The time limit is for all of them together. A tuning for each class that was
// searched goes to the first of `tunings`, in the order of annulus_batch_plan_info.config, and how
// many these are to *count; each is given back. There must be `room` for as many as there are
// classes within the bounds, which ANNULUS_REQUEST_CLASSES is. Errors are those of
// annulus_tuning_create and of annulus_batch_plan_create; ANNULUS_INVALID_ARGUMENT as well for a
// step that is not within the bounds. After an error there are no tunings; a class whose search had
// ended keeps its result.
ANNULUS_EXPORT annulus_status annulus_tuning_create_batch(
    annulus_device* device, const annulus_batch_problem* problem, const annulus_step_requests* step,
    size_t step_count, const annulus_tune_options* options, annulus_tuning** tunings, size_t room,
    size_t* count);

ANNULUS_EXPORT annulus_status annulus_tuning_destroy(annulus_tuning* tuning);

typedef enum annulus_tune_status {
  ANNULUS_TUNED = 0,          // the search ended by itself
  ANNULUS_TUNE_PARTIAL = 1,   // a limit or the caller ended the search; a later call searches again
  ANNULUS_TUNED_ALREADY = 2,  // nothing was run
  ANNULUS_TUNE_PLANNED = 3    // a dry run
} annulus_tune_status;

typedef struct annulus_tune_result {
  size_t struct_size;
  const char* shape;           // the kind of problem that the result is kept for
  const char* config;          // the configuration that annulus_plan_create uses from now on
  const char* default_config;  // the heuristic's choice
  const char* runner_up;       // empty: there is none
  const char* path;            // of the entry's file; empty where the result is in memory only
  const char* problem;         // why the result is in memory only although a folder was given
  double time;          // median of config's times: cycles where predicted, else microseconds
  double default_time;  // of default_config in the same rounds
  double ratio;         // time over default_time
  double ratio_low;     // its 95 % interval
  double ratio_high;
  double seconds;      // that the call took
  int64_t candidates;  // of the space
  int64_t tried;       // 0: the search ended before the first candidate, and there are no times
  int64_t dropped;
  size_t trials;      // for annulus_tuning_get_trial; 0 for ANNULUS_TUNED_ALREADY
  int32_t status;     // annulus_tune_status
  int32_t predicted;  // 0 or 1: times are predicted cycles
  // Where `problem` is not empty, the file that could not be written: its name below a folder of
  // tuned results, and its text.
  const char* file_name;
  const char* file;
  // The journal of the search, for a later call to go on from, or for annulus_tuning_replay; empty:
  // there is none (any more).
  const char* journal;
  int64_t resumed;  // candidates that the journal of an earlier search had answers for
  // The median of the ratio with L2 cold, or warm with cold_cache; 0 where it was not measured.
  double other_ratio;
  int64_t repeated_rounds;  // because the device was slower than it can be
  int32_t slowed;           // 0 or 1: it stayed so
} annulus_tune_result;

#define ANNULUS_TUNE_RESULT_INIT                                                                   \
  {                                                                                                \
    sizeof(annulus_tune_result), NULL, NULL, NULL, NULL, NULL, NULL, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, \
        0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0.0, 0, 0                                           \
  }

ANNULUS_EXPORT annulus_status annulus_tuning_get(annulus_tuning* tuning,
                                                 annulus_tune_result* result);

// One configuration of the space.
typedef struct annulus_tune_trial {
  size_t struct_size;
  const char* config;
  const char* outcome;  // "tried", "not tried", or why it was dropped
  double model_cycles;  // predicted from the plan alone; what orders the search
  double time;          // median where it was tried, in the result's unit
  double ratio;         // median of its times over the heuristic choice's, round by round
} annulus_tune_trial;

#define ANNULUS_TUNE_TRIAL_INIT \
  { sizeof(annulus_tune_trial), NULL, NULL, 0.0, 0.0, 0.0 }

ANNULUS_EXPORT annulus_status annulus_tuning_get_trial(annulus_tuning* tuning, size_t index,
                                                       annulus_tune_trial* trial);

// ---- In the background, as BackgroundTuning of annulus/tune.h, which says what the host promises

// All get `user` of the options, on the thread that tunes. They must return, must not call the
// library with the same device, and must destroy neither the tuning nor the device.
typedef int32_t (*annulus_may_measure_callback)(void* user);  // 0 or 1
typedef void (*annulus_measured_callback)(void* user);
// The texts of the result live as long as the callback runs; it has no trials.
typedef void (*annulus_tuned_callback)(void* user, const annulus_tune_result* result);

typedef struct annulus_background_tuning_options {
  size_t struct_size;
  // What is tuned, in this order; none, and no batches: what the device plans, batches included,
  // the most often planned first.
  const annulus_problem* const* problems;
  size_t problem_count;
  annulus_may_measure_callback may_measure;  // null: it may always
  annulus_measured_callback measured;        // null: none
  annulus_tune_callback progress;            // null: none
  annulus_tuned_callback tuned;              // null: none
  annulus_execute_callback execute;          // gets one task; null: a thread of the library
  void* user;                                // of all these
  double ask_again_seconds;                  // after a no; more than 0
  double time_limit_seconds;                 // of work on one problem, without waits; 0: no limit
  int64_t threads;  // that compute the oracle's answers; 0: one per processor
  // Tuned after the problems, each for steps that are made of its bounds; `tuned` is called for
  // each class of a batch's requests.
  const annulus_batch_problem* const* batches;
  size_t batch_count;
} annulus_background_tuning_options;

#define ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT                                                    \
  {                                                                                               \
    sizeof(annulus_background_tuning_options), NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0.01, \
        0.0, 1, NULL, 0                                                                           \
  }

typedef struct annulus_background_tuning annulus_background_tuning;

// Null options are the defaults. Holds no device open: closing the device ends the tuning, which
// stays a handle until it is destroyed.
ANNULUS_EXPORT annulus_status annulus_background_tuning_create(
    annulus_device* device, const annulus_background_tuning_options* options,
    annulus_background_tuning** tuning);
// Waits for the measurement or the compilation under way; calls no callback any more afterwards.
ANNULUS_EXPORT annulus_status annulus_background_tuning_destroy(annulus_background_tuning* tuning);
// No measurement begins until it was resumed as often; waits for the one under way.
ANNULUS_EXPORT annulus_status annulus_background_tuning_pause(annulus_background_tuning* tuning);
ANNULUS_EXPORT annulus_status annulus_background_tuning_resume(annulus_background_tuning* tuning);
// Waits until nothing is left to tune, at most so many seconds; negative: for as long as it takes.
// *done is 0 where the time was over, else 1; null: not told.
ANNULUS_EXPORT annulus_status annulus_background_tuning_wait(annulus_background_tuning* tuning,
                                                             double seconds, int32_t* done);
// Ends it as soon as may be, without waiting.
ANNULUS_EXPORT annulus_status annulus_background_tuning_cancel(annulus_background_tuning* tuning);

typedef enum annulus_background_tuning_state {
  ANNULUS_BACKGROUND_TUNING = 0,  // a problem
  ANNULUS_BACKGROUND_TUNING_PAUSED = 1,
  ANNULUS_BACKGROUND_TUNING_IDLE = 2,  // all that was planned so far is tuned
  ANNULUS_BACKGROUND_TUNING_ENDED = 3  // all that was given is tuned, or it was cancelled
} annulus_background_tuning_state;

typedef struct annulus_background_tuning_status {
  size_t struct_size;
  int64_t state;          // ANNULUS_BACKGROUND_TUNING_*
  int64_t tuned;          // searches that ended by themselves
  int64_t partial;        // that a limit or the end cut short
  int64_t already_there;  // problems that had a complete result
  int64_t failed;
  int64_t measurements;    // that began
  int64_t refusals;        // times that may_measure said no
  const char* last_error;  // of the last problem that failed, or why all ended; stays as the handle
} annulus_background_tuning_status;

#define ANNULUS_BACKGROUND_TUNING_STATUS_INIT \
  { sizeof(annulus_background_tuning_status), 0, 0, 0, 0, 0, 0, 0, NULL }

ANNULUS_EXPORT annulus_status annulus_background_tuning_get_status(
    annulus_background_tuning* tuning, annulus_background_tuning_status* status);

// ---- What was found before

// One result as its file or pack states it.
typedef struct annulus_tuned_entry {
  size_t struct_size;
  const char* path;    // of its file, or of the pack that it is in
  const char* device;  // the chip that it was found on
  const char* shape;   // the problems that it is for, with the ranges of their lengths
  const char* config;
  const char* runner_up;
  double time;  // cycles where predicted, else microseconds
  double default_time;
  double ratio_low;
  double ratio_high;
  int64_t rounds;
  int64_t candidates;
  int64_t when;   // seconds since 1970
  int64_t batch;  // of the problem that was measured
  int64_t heads;
  int64_t kv_heads;
  int64_t seq_q;
  int64_t seq_k;
  int32_t predicted;        // 0 or 1
  int32_t complete;         // 0 or 1
  int32_t library_version;  // as annulus_version()
  int32_t driver_version;
  const char* kind;      // besides lengths and heads: "D64 bf16, causal, about 0.5 of the blocks"
  const char* name;      // among others of its device: "<32 hex digits>-wgmma3"
  const char* outdated;  // why no device uses it with this build; empty: they do
  const char* default_config;  // the heuristic's choice, which it was compared with
  const char* pattern;  // of the problem that was measured; empty where it names a file or is long
  int32_t packed;       // 0 or 1: in a pack
  int32_t nvrtc_version;  // 13000 is 13.0
  int32_t clock_mhz;      // that the driver stated
  int32_t memory_clock_mhz;
  double other_ratio;  // as of annulus_tune_result, as is the next one
  int64_t repeated_rounds;
  int32_t cold_cache;  // 0 or 1: L2 was empty before each launch
} annulus_tuned_entry;

// ---- A page of searches and results

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_TUNE_H_
