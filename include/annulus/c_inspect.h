#ifndef ANNULUS_C_INSPECT_H_
#define ANNULUS_C_INSPECT_H_

// The C interface of questions: which problems have kernels, how long a plan is predicted to take,
// what a device counted, and how a simulated one runs. The conventions are those at the top of
// annulus/c.h.

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Problems

// The head dims that kernels exist for, ascending; with e4m3 operands only those of 64 and more are
// supported.
ANNULUS_EXPORT size_t annulus_dims_count(void);
// An index of annulus_dims_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_dims_get(size_t index, int64_t* dim_qk, int64_t* dim_v);

// Whether annulus_plan_create would take the problem on some device and, where `operands` is not
// null, whether annulus_plan_run would take them; the reason is in annulus_last_error(). Needs no
// device.
ANNULUS_EXPORT annulus_status annulus_problem_validate(const annulus_problem* problem,
                                                       const annulus_operands* operands);

// Visible pairs of a query and a key over all pairs, of all heads; exact, whatever the tiles of a
// plan; 0 where there are no pairs. What an answer needs is 2 (Dqk + Dv) floating-point operations
// for each visible pair. Needs no device. A null limit is the default one.
ANNULUS_EXPORT annulus_status annulus_problem_density(const annulus_problem* problem,
                                                      const annulus_work_limit* limit,
                                                      double* density);

// ---- Plans

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

// ---- Devices

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

// What became of the requests to a cache.
typedef struct annulus_cache_counters {
  size_t struct_size;
  int64_t hits;       // kept already
  int64_t waits;      // another thread was making it
  int64_t misses;     // made for this call
  int64_t failures;   // misses where making it failed
  int64_t evictions;  // dropped for newer ones
  int64_t too_large;  // misses larger than the limit: given out, not kept
  int64_t bytes;      // kept now
  int64_t entries;
} annulus_cache_counters;

#define ANNULUS_CACHE_COUNTERS_INIT \
  { sizeof(annulus_cache_counters), 0, 0, 0, 0, 0, 0, 0, 0 }

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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_INSPECT_H_
