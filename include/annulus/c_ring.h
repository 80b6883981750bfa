#ifndef ANNULUS_C_RING_H_
#define ANNULUS_C_RING_H_

// The C interface of rings: annulus/ring.h, for P ranks in one process or for one rank over a
// communicator. The conventions are those at the top of annulus/c.h; annulus/ring.h and
// docs/ring.md explain what a ring does.
//
//   annulus_ring_create(devices, 4, &problem, NULL, &ring);
//   annulus_ring_get_rank(ring, r, &rank);       which rows are rank r's, how much workspace
//   annulus_ring_run(ring, calls, 4);            one call for each rank
//
//   annulus_ring_rank_plan_create(device, ranks, &problem, NULL, &plan);   on every rank
//   annulus_ring_rank_plan_get_rank(plan, &rank);
//   annulus_ring_rank_plan_run(plan, &call, NULL);

#include "annulus/c.h"
#include "annulus/c_communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_ring annulus_ring;

typedef enum annulus_sharding {
  ANNULUS_CONTIGUOUS = 1,  // rank r holds the r-th of P pieces
  ANNULUS_ZIGZAG = 2       // of 2 P pieces rank r holds the r-th and the r-th from the end
} annulus_sharding;

// How rows of K and V get from the rank that owns them to the ranks whose queries see them.
typedef enum annulus_route {
  ANNULUS_ROUTE_AUTO = 0,    // the one that sends fewer bytes, in fewer rounds, with fewer held
  ANNULUS_ROUTE_DIRECT = 1,  // in one hop
  ANNULUS_ROUTE_RING = 2     // from neighbour to neighbour, whichever way round is shorter
} annulus_route;

// Rows [start, start + length) of the whole problem.
typedef struct annulus_segment {
  int64_t start;
  int64_t length;
} annulus_segment;

// Which rows one rank holds, in the order of its tensors' rows: of Q, O and LSE, and of K and V.
typedef struct annulus_shard {
  const annulus_segment* q;
  size_t q_count;
  const annulus_segment* k;
  size_t k_count;
} annulus_shard;

typedef struct annulus_ring_options {
  size_t struct_size;
  int32_t sharding;  // annulus_sharding, where no shards are given
  int32_t multiple;  // pieces begin at multiples of this many rows; 0: a power of two up to 128
  // One for each rank, which together hold every row once; null: by sharding.
  const annulus_shard* shards;
  const char* config;  // a kernel configuration; null: the tuned one, else chosen
  // Options of the plans that a ring is made of; config must be null here where the field above is
  // not. No rows are split: kv_splits over 1 is ANNULUS_UNSUPPORTED. Null: the defaults.
  const annulus_plan_options* plans;
  int64_t route;  // annulus_route
  // Entries of `shards`, compared with the ranks; 0: not compared.
  size_t shard_count;
} annulus_ring_options;

#define ANNULUS_RING_OPTIONS_INIT \
  { sizeof(annulus_ring_options), ANNULUS_CONTIGUOUS, 0, NULL, NULL, NULL, ANNULUS_ROUTE_AUTO, 0 }

// Decides, compiles and uploads for all ranks. `devices` has one handle for each rank; a device may
// occur several times. Null options are the defaults. The ring keeps what it needs of the devices.
ANNULUS_EXPORT annulus_status annulus_ring_create(annulus_device* const* devices, size_t ranks,
                                                  const annulus_problem* problem,
                                                  const annulus_ring_options* options,
                                                  annulus_ring** ring);

// Waits for the devices, so it must not be called while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_ring_destroy(annulus_ring* ring);

// Writes to *step the problem by whose tuned result the configuration of such a ring is chosen:
// give it to annulus_tune (annulus/c_tune.h) with the device of rank 0. Its texts and its layout
// are those of `problem`. Null options are the defaults.
ANNULUS_EXPORT annulus_status annulus_ring_get_step(size_t ranks, const annulus_problem* problem,
                                                    const annulus_ring_options* options,
                                                    annulus_problem* step);

typedef struct annulus_ring_info {
  size_t struct_size;
  const char* kernel;
  const char* config;
  const char* tuned;     // the tuned result that config comes from; empty: none
  const char* schedule;  // lines, one for each rank and step
  int64_t ranks;
  int64_t bytes_sent;        // by all ranks together, in one run
  int64_t bytes_plain_ring;  // bytes sent if every shard went to every rank
  double plan_ms;            // time to decide
  double compile_ms;         // time to get the kernels and upload the lists
  const char* route_reason;  // a sentence: why this route
  int64_t route;             // annulus_route, never ANNULUS_ROUTE_AUTO
  int64_t rounds;
  int64_t messages;       // of all ranks together, in one run, as the bytes
  int64_t bytes_needed;   // each row once for each rank but its owner that sees it
  int64_t bytes_relayed;  // received by ranks that only pass them on
} annulus_ring_info;

#define ANNULUS_RING_INFO_INIT \
  { sizeof(annulus_ring_info), NULL, NULL, NULL, NULL, 0, 0, 0, 0.0, 0.0, NULL, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_ring_get_info(annulus_ring* ring, annulus_ring_info* info);

typedef struct annulus_ring_rank {
  size_t struct_size;
  const char* device;
  annulus_shard shard;  // its arrays belong to the ring
  int64_t rows_q;       // of the shard
  int64_t rows_k;
  int64_t launches;  // of attention kernels
  int64_t full_tiles;
  int64_t partial_tiles;
  int64_t bytes_sent;
  int64_t bytes_received;
  int64_t workspace_bytes;  // scratch memory that every run in flight needs of its own; may be 0
  int64_t device_bytes;     // memory that the ring holds for it
  // The predicted time of its attention kernels, one after another (annulus_plan_predict). Copies
  // between ranks are not counted.
  double predicted_micros;
  double least_micros;  // its range, likewise
  double most_micros;
  int64_t rank;
} annulus_ring_rank;

#define ANNULUS_RING_RANK_INIT                                                                     \
  {                                                                                                \
    sizeof(annulus_ring_rank), NULL, {NULL, 0, NULL, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, \
        0                                                                                          \
  }

ANNULUS_EXPORT annulus_status annulus_ring_get_rank(annulus_ring* ring, size_t rank,
                                                    annulus_ring_rank* info);

// The schedule as an SVG document: a row for each rank, a column for each step. Drawn at the first
// call.
ANNULUS_EXPORT annulus_status annulus_ring_get_picture(annulus_ring* ring, const char** svg);

// The arguments of one rank for a run.
typedef struct annulus_ring_call {
  size_t struct_size;                // the same in all elements of an array
  void* stream;                      // of the rank's device
  const annulus_operands* operands;  // rows are those of its shard
  void* workspace;                   // workspace_bytes, 256-byte aligned
} annulus_ring_call;

#define ANNULUS_RING_CALL_INIT \
  { sizeof(annulus_ring_call), NULL, NULL, NULL }

// Puts the work of all ranks on their streams and returns. It allocates nothing, takes no lock and
// does not wait, and it may be captured where all streams are part of the capture. O and LSE of a
// rank are complete when its stream has passed the run. Only one thread at a time may put a run on
// the streams: a call that meets another one in a different thread is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_ring_run(annulus_ring* ring, const annulus_ring_call* calls,
                                               size_t count);

// ---- One rank

// One rank of a ring whose other ranks are planned by other threads or processes, of this machine
// or others; annulus::RingRankPlan.
typedef struct annulus_ring_rank_plan annulus_ring_rank_plan;

// Plans this rank, together with all others, who call it at the same time with the same problem and
// options; the communicator says how many there are. They compare what they bring, run rank 0's
// configuration, and meet again when all have compiled, within
// annulus_communicator_options.planning_ms. Null options are the defaults. The plan keeps what it
// needs of device and communicator.
//
// Errors are those of annulus_ring_create, the same code on every rank, with the rank that failed
// or differs in the text, and ANNULUS_COMMUNICATION. Arguments that cannot be read, as a null or a
// pattern that does not parse, fail on this rank alone; the others wait for it.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_create(annulus_device* device,
                                                            annulus_communicator* communicator,
                                                            const annulus_problem* problem,
                                                            const annulus_ring_options* options,
                                                            annulus_ring_rank_plan** plan);

// Waits for the device, so it must not be called while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_destroy(annulus_ring_rank_plan* plan);

// The schedule is that of this rank; totals are those of all ranks.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_get_info(annulus_ring_rank_plan* plan,
                                                              annulus_ring_info* info);

// Writes this rank's part, whatever its number is.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_get_rank(annulus_ring_rank_plan* plan,
                                                              annulus_ring_rank* info);

// Puts this rank's work on its streams and returns when NCCL has queued its messages, which may
// take until the other ranks have called too, but never waits for a device. All ranks call it, as
// often as each other, one thread at a time as annulus_ring_run. It allocates nothing and takes no
// lock, and it may be captured where the communicator is blocking. *run (may be null) is the number
// of the run, for which annulus_communicator_get_state says, once the stream has passed it, whether
// its outputs are good or void. ANNULUS_INVALID_ARGUMENT before anything is queued, and
// ANNULUS_COMMUNICATION where a rank does not come within the communicator's deadline: the outputs
// of that run are void, and the communicator is given up.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_run(annulus_ring_rank_plan* plan,
                                                         const annulus_ring_call* call,
                                                         int64_t* run);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_RING_H_
