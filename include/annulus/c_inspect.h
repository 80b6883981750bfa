#ifndef ANNULUS_C_INSPECT_H_
#define ANNULUS_C_INSPECT_H_

// The C interface of what can be asked: what problems there are kernels for, how long a plan will
// take on paper, what a device counted, and how a simulated one runs. The conventions are those at
// the top of annulus/c.h.

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Problems

// The head dims that kernels exist for, ascending; with e4m3 those from 64 on.
ANNULUS_EXPORT size_t annulus_dims_count(void);
// ANNULUS_INVALID_ARGUMENT for an index from annulus_dims_count() on.
ANNULUS_EXPORT annulus_status annulus_dims_get(size_t index, int64_t* dim_qk, int64_t* dim_v);

// Whether annulus_plan_create would take the problem on some device and, where `operands` is not
// null, whether annulus_plan_run would take them; what is wrong is in annulus_last_error(). Needs
// no device.
ANNULUS_EXPORT annulus_status annulus_problem_validate(const annulus_problem* problem,
                                                       const annulus_operands* operands);

// Visible pairs of a query and a key over all pairs, of all heads; exact, whatever the tiles of a
// plan; 0 where there are no pairs. What an answer needs is 2 (Dqk + Dv) floating-point operations
// for each visible pair. Needs no device.
ANNULUS_EXPORT annulus_status annulus_problem_density(const annulus_problem* problem,
                                                      double* density);

// ---- Plans

enum { ANNULUS_MAX_PIPES = 8 };

// One pipe of a multiprocessor, or bytes that it waits for.
typedef struct annulus_pipe {
  const char* name;  // "tensor cores", ...; stays as long as the library
  double busy;       // its share of the time in which it works, on an average multiprocessor
} annulus_pipe;

// How long a run takes on paper, by the pipe model (docs/tuning.md), without running it. A
// prediction, which no GPU has confirmed.
typedef struct annulus_prediction {
  size_t struct_size;
  double micros;      // infinite where not one CTA fits
  const char* limit;  // which pipe holds it up, or what else; stays as long as the library
  size_t pipe_count;
  annulus_pipe pipes[ANNULUS_MAX_PIPES];
} annulus_prediction;

#define ANNULUS_PREDICTION_INIT                 \
  {                                             \
    sizeof(annulus_prediction), 0.0, NULL, 0, { \
      { NULL, 0.0 }                             \
    }                                           \
  }

// Computed anew in each call; takes milliseconds where there are many tile rows.
ANNULUS_EXPORT annulus_status annulus_plan_predict(annulus_plan* plan,
                                                   annulus_prediction* prediction);

// ---- Devices

// What a simulated device counted since it was opened or its counters were last cleared. Nothing on
// a real one.
typedef struct annulus_counter {
  const char* name;  // "launches", "warp_instructions", ...; stays as long as the device's handle
  uint64_t value;
} annulus_counter;

// Writes the first `capacity` counters, in a fixed order, and to *count how many there are. With
// `clear` 1 all begin again at 0.
ANNULUS_EXPORT annulus_status annulus_device_get_counters(annulus_device* device, int32_t clear,
                                                          annulus_counter* counters,
                                                          size_t capacity, size_t* count);

// What became of the lists that were asked for of a cache.
typedef struct annulus_cache_counters {
  size_t struct_size;
  int64_t hits;       // kept already
  int64_t waits;      // another thread was making it
  int64_t misses;     // made for this call
  int64_t failures;   // of the misses: making it failed
  int64_t evictions;  // kept before, dropped for newer ones
  int64_t too_large;  // of the misses: larger than the limit, given out and not kept
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

// How a simulated device runs what is launched from now on; a real one ignores it. Null is the
// defaults.
ANNULUS_EXPORT annulus_status annulus_device_set_simulation(annulus_device* device,
                                                            const annulus_simulation* simulation);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_INSPECT_H_
