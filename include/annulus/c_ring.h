#ifndef ANNULUS_C_RING_H_
#define ANNULUS_C_RING_H_

// The C interface of ranks: rendezvous and communicators (annulus/communicator.h), rings
// (annulus/ring.h) and joins (annulus/join.h), whose declarations have the full meaning;
// docs/ring.md explains rings. The conventions are at the top of annulus/c.h.
//
//   annulus_rendezvous_meet(&options, &meeting);                        // on every rank
//   annulus_communicator_meet(device, meeting, NULL, &ranks);
//   annulus_ring_rank_plan_create(device, ranks, &problem, NULL, &plan);
//   annulus_ring_rank_plan_get_rank(plan, &rank);                       // its rows and workspace
//   annulus_ring_rank_plan_run(plan, &call, NULL);
//
//   annulus_ring_create(devices, 4, &problem, NULL, &ring);             // or: in one process
//   annulus_ring_run(ring, calls, 4);                                   // one call per rank
//
// Calls of a communicator, and runs over one, may wait for the other ranks, up to a deadline. Only
// one thread at a time may be inside such a call: a second thread gets ANNULUS_INVALID_ARGUMENT.
// Any thread may call annulus_communicator_get_*, _next_event and _wait.

#include "annulus/c.h"
#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Rendezvous

typedef struct annulus_rendezvous annulus_rendezvous;

// The C form of annulus::RendezvousOptions.
typedef struct annulus_rendezvous_options {
  size_t struct_size;
  const char* address;    // "tcp:HOST:PORT" or "file:PATH"; null for annulus_rendezvous_over
  const char* token;      // 1 to 63 bytes that identify the session
  const char* listen_on;  // the IP address to listen on; null: chosen
  int32_t rank;
  int32_t ranks;        // at most 1024
  int64_t deadline_ms;  // time limit of the meeting, from 1 ms to a day
} annulus_rendezvous_options;
#define ANNULUS_RENDEZVOUS_OPTIONS_INIT \
  { sizeof(annulus_rendezvous_options), NULL, NULL, NULL, 0, 1, 30000 }

// Calls annulus::Rendezvous::meet.
ANNULUS_EXPORT annulus_status annulus_rendezvous_meet(const annulus_rendezvous_options* options,
                                                      annulus_rendezvous** rendezvous);

// An all-gather of the engine: takes `bytes` bytes of this rank (the same number on every rank),
// writes the bytes of all ranks in rank order to `all` (ranks * bytes), and returns 0. It is called
// once, on the thread that called the library. Another return value is ANNULUS_COMMUNICATION.
typedef int (*annulus_all_gather_callback)(void* user, const void* own, size_t bytes, void* all);

// Calls annulus::Rendezvous::over. The options' address is ignored, and the token may be null.
// `user` is not used after the call.
ANNULUS_EXPORT annulus_status annulus_rendezvous_over(annulus_all_gather_callback all_gather,
                                                      void* user,
                                                      const annulus_rendezvous_options* options,
                                                      annulus_rendezvous** rendezvous);

// Closes this rank's connections, and waits up to half a second until sent bytes have arrived.
// Communicators and plans that use the rendezvous keep it alive.
ANNULUS_EXPORT annulus_status annulus_rendezvous_destroy(annulus_rendezvous* rendezvous);

typedef struct annulus_rendezvous_info {
  size_t struct_size;
  int32_t rank;
  int32_t ranks;
  int64_t generation;       // annulus::Rendezvous::generation
  const int32_t* members;   // [ranks]: the number of each rank in generation 1
  uint64_t members_digest;  // a digest of `members`, the same on all of them and on every machine
} annulus_rendezvous_info;
#define ANNULUS_RENDEZVOUS_INFO_INIT \
  { sizeof(annulus_rendezvous_info), 0, 0, 0, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_rendezvous_get_info(annulus_rendezvous* rendezvous,
                                                          annulus_rendezvous_info* info);

// The most bytes of one rank in a call of annulus_rendezvous_all_gather and _gather.
#define ANNULUS_MAX_GATHERED_BYTES 65536

// Calls annulus::Rendezvous::all_gather. deadline_ms is from 1 ms to a day. `all` has room for
// `room` bytes per rank; the bytes of rank r are at r * room, and counts[r] is their number. If
// counts is null, all ranks must bring `room` bytes. After the call returned ANNULUS_OK, this
// rank's bytes reach the others even if the process dies. Only one thread at a time may call it or
// annulus_rendezvous_gather.
//
// ANNULUS_INVALID_ARGUMENT for more than ANNULUS_MAX_GATHERED_BYTES, a wrong deadline and a second
// thread, and, after the exchange, if a rank brought more bytes than there is room for, or not
// `room` bytes although counts is null. ANNULUS_COMMUNICATION, after the bytes of the other ranks
// have arrived, if ranks have gone or are late. A failed call counts as a call.
ANNULUS_EXPORT annulus_status annulus_rendezvous_all_gather(annulus_rendezvous* rendezvous,
                                                            const void* own, size_t bytes,
                                                            int64_t deadline_ms, void* all,
                                                            size_t room, size_t* counts);

// The outcome for the bytes of a rank.
typedef enum annulus_arrival {
  ANNULUS_CAME = 0,
  ANNULUS_GONE = 1,  // its connection ended before
  ANNULUS_LATE = 2   // the bytes missed the deadline
} annulus_arrival;

// Calls annulus::Rendezvous::gather: like annulus_rendezvous_all_gather, but stores an
// annulus_arrival for each rank in `arrivals`; gone and late ranks have count 0.
ANNULUS_EXPORT annulus_status annulus_rendezvous_gather(annulus_rendezvous* rendezvous,
                                                        const void* own, size_t bytes,
                                                        int64_t deadline_ms, void* all, size_t room,
                                                        size_t* counts, int32_t* arrivals);

// The C form of annulus::Position.
typedef struct annulus_position {
  int64_t generation;
  int64_t run;
  int64_t round;
} annulus_position;

// Calls annulus::Rendezvous::post. A second thread gets ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_rendezvous_post(annulus_rendezvous* rendezvous,
                                                      const annulus_position* position);

// The C form of annulus::RankState.
typedef struct annulus_rank_state {
  size_t struct_size;
  const char* reason;         // why the connection ended; empty: it has not ended
  annulus_position position;  // the last position that arrived
  int32_t posted;             // 0 or 1: a position has arrived from the rank
  int32_t gone;               // 0 or 1: its connection has ended; a late rank is not gone
  int64_t silent_ms;          // time since the last position; 0 if there was none
} annulus_rank_state;
#define ANNULUS_RANK_STATE_INIT \
  { sizeof(annulus_rank_state), NULL, {0, 0, 0}, 0, 0, 0 }

// Stores the state of another rank; `rank` must not be this rank.
ANNULUS_EXPORT annulus_status annulus_rendezvous_get_state(annulus_rendezvous* rendezvous,
                                                           int32_t rank, annulus_rank_state* state);

// The C form of annulus::RegroupOptions.
typedef struct annulus_regroup_options {
  size_t struct_size;
  const int32_t* without;  // connected ranks to exclude
  size_t without_count;
  int64_t at_least;     // the least number of ranks that continue; 0: a majority
  int64_t deadline_ms;  // from 1 ms to a day
} annulus_regroup_options;
#define ANNULUS_REGROUP_OPTIONS_INIT \
  { sizeof(annulus_regroup_options), NULL, 0, 0, 5000 }

// Calls annulus::Rendezvous::regroup. Afterwards `rendezvous` can only be destroyed.
ANNULUS_EXPORT annulus_status annulus_rendezvous_regroup(annulus_rendezvous* rendezvous,
                                                         const annulus_regroup_options* options,
                                                         annulus_rendezvous** regrouped);

// ---- Communicators

typedef struct annulus_communicator annulus_communicator;

// The id that the ranks of one communicator share: an ncclUniqueId.
typedef struct annulus_communicator_id {
  char bytes[128];
} annulus_communicator_id;

// Calls annulus::make_communicator_id. This process serves the meeting of the ranks, so it must
// live until all have met.
ANNULUS_EXPORT annulus_status annulus_communicator_make_id(annulus_device* device,
                                                           annulus_communicator_id* id);

// The C form of annulus::CommunicatorOptions.
typedef struct annulus_communicator_options {
  size_t struct_size;
  int32_t blocking;     // 0 or 1: NCCL's calls block until they are done
  int32_t watched;      // 0 or 1: a thread of the library watches pending runs
  int64_t deadline_ms;  // time limit to queue a group, and of its messages; 0: no limit
  int64_t planning_ms;  // time limit to meet, and to plan together; 0: no limit
  int64_t ctas;         // the most CTAs of NCCL's kernels, from 1 to 32
} annulus_communicator_options;
#define ANNULUS_COMMUNICATOR_OPTIONS_INIT \
  { sizeof(annulus_communicator_options), 0, 1, 30000, 600000, 8 }

// Opens a communicator of ranks that share an id (see annulus::Communicator::open).
ANNULUS_EXPORT annulus_status annulus_communicator_open(annulus_device* device,
                                                        const annulus_communicator_id* id,
                                                        int32_t ranks, int32_t rank,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// Opens a communicator of ranks that have met (see annulus::Communicator::open).
ANNULUS_EXPORT annulus_status annulus_communicator_meet(annulus_device* device,
                                                        annulus_rendezvous* rendezvous,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// Uses an engine's ncclComm_t (see annulus::Communicator::borrow). The engine must destroy it after
// the handle and all plans that use it. `blocking` of the options must be its mode. `rendezvous`
// has the same ranks, or is null.
ANNULUS_EXPORT annulus_status annulus_communicator_borrow(
    annulus_device* device, void* nccl_comm, annulus_rendezvous* rendezvous,
    const annulus_communicator_options* options, annulus_communicator** communicator);

// Destroys the handle. The communicator ends after its last plan, together with the other ranks of
// its host if there was no failure, for which it waits at most the deadline. A call that another
// thread is inside ends first.
ANNULUS_EXPORT annulus_status annulus_communicator_destroy(annulus_communicator* communicator);

typedef struct annulus_communicator_info {
  size_t struct_size;
  const char* nccl;      // "2.28.9 at /usr/lib/x86_64-linux-gnu/libnccl.so.2"
  int64_t nccl_version;  // 22809 is 2.28.9
  int32_t rank;
  int32_t ranks;
  int32_t blocking;         // 0 or 1
  int32_t borrowed;         // 0 or 1
  int32_t simulated;        // 0 or 1
  int32_t watched;          // 0 or 1
  int64_t generation;       // generation of the rendezvous; 0 without one
  int64_t ctas;             // annulus_communicator_options.ctas
  uint64_t members_digest;  // members_digest of the rendezvous; 0 without one
} annulus_communicator_info;
#define ANNULUS_COMMUNICATOR_INFO_INIT \
  { sizeof(annulus_communicator_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_communicator_get_info(annulus_communicator* communicator,
                                                            annulus_communicator_info* info);

// Messages to and from other ranks, in device memory.
typedef struct annulus_sent_bytes {
  const void* from;
  size_t bytes;
  int64_t to;  // the receiving rank
} annulus_sent_bytes;
typedef struct annulus_received_bytes {
  void* to;
  size_t bytes;
  int64_t from;  // the sending rank
} annulus_received_bytes;

// Calls annulus::Communicator::exchange. *run is the number of the run; `run` may be null. An array
// without elements may be null.
ANNULUS_EXPORT annulus_status annulus_communicator_exchange(
    annulus_communicator* communicator, void* stream, const annulus_sent_bytes* sends,
    size_t send_count, const annulus_received_bytes* receives, size_t receive_count, int64_t* run);

// Calls annulus::Communicator::allocate. 0 bytes give null. Memory that was not released is
// released with the handle.
ANNULUS_EXPORT annulus_status annulus_communicator_allocate(annulus_communicator* communicator,
                                                            size_t bytes, void** memory);
// Releases memory of annulus_communicator_allocate of this handle; work that uses it must have
// ended. Null does nothing.
ANNULUS_EXPORT annulus_status annulus_communicator_release(annulus_communicator* communicator,
                                                           void* memory);

// ---- Runs of a communicator

// Stores the number of runs so far (see annulus::Communicator::runs).
ANNULUS_EXPORT annulus_status annulus_communicator_get_runs(annulus_communicator* communicator,
                                                            int64_t* runs);

// The C form of annulus::RunState.
typedef enum annulus_run_state {
  ANNULUS_RUN_UNDER_WAY = 1,  // some messages have not arrived yet
  ANNULUS_RUN_GOOD = 2,       // all messages have arrived
  ANNULUS_RUN_VOID = 3        // some messages will never arrive; the outputs are worthless
} annulus_run_state;

// Stores an annulus_run_state. Runs of captured graphs have no state. ANNULUS_INVALID_ARGUMENT for
// a run that does not exist.
ANNULUS_EXPORT annulus_status annulus_communicator_get_state(annulus_communicator* communicator,
                                                             int64_t run, int32_t* state);
// Waits on the host until the run is good or void (see annulus::Communicator::wait). A void run is
// not an error of this call.
ANNULUS_EXPORT annulus_status annulus_communicator_wait(annulus_communicator* communicator,
                                                        int64_t run, int32_t* state);

// Why the communicator was abandoned.
typedef struct annulus_communicator_failure {
  size_t struct_size;
  const char* reason;     // null while the communicator is usable
  const int32_t* blamed;  // the ranks at fault, if any
  size_t blamed_count;
} annulus_communicator_failure;
#define ANNULUS_COMMUNICATOR_FAILURE_INIT \
  { sizeof(annulus_communicator_failure), NULL, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_communicator_get_failure(
    annulus_communicator* communicator, annulus_communicator_failure* failure);

// The C form of annulus::CommunicatorEventKind. Later versions may add kinds.
typedef enum annulus_communicator_event_kind {
  ANNULUS_EVENT_OPENED = 1,
  ANNULUS_EVENT_SLOW = 2,     // messages have taken more than half of the deadline; ranks are late
  ANNULUS_EVENT_GONE = 3,     // the connections to ranks have ended
  ANNULUS_EVENT_GIVEN_UP = 4  // the communicator is abandoned because of ranks
} annulus_communicator_event_kind;

typedef struct annulus_communicator_event {
  size_t struct_size;
  int64_t number;    // from 1; 0: there is no such event
  const char* text;  // a sentence
  const int32_t* ranks;
  size_t rank_count;
  int64_t unix_micros;  // time in microseconds since 1970
  int64_t generation;
  int64_t run;   // the run that the device had reached
  int64_t kind;  // annulus_communicator_event_kind
} annulus_communicator_event;
#define ANNULUS_COMMUNICATOR_EVENT_INIT \
  { sizeof(annulus_communicator_event), 0, NULL, NULL, 0, 0, 0, 0, 0 }

// Stores the oldest event whose number is larger than `after`, or an event of number 0 if there is
// none. The newest 64 events are kept, and the events that calls have returned.
ANNULUS_EXPORT annulus_status annulus_communicator_next_event(annulus_communicator* communicator,
                                                              int64_t after,
                                                              annulus_communicator_event* event);

// The state of another rank (annulus::Communicator::peers). ANNULUS_INVALID_ARGUMENT for this rank,
// and without a rendezvous.
ANNULUS_EXPORT annulus_status annulus_communicator_get_peer(annulus_communicator* communicator,
                                                            int32_t rank,
                                                            annulus_rank_state* state);

// Calls annulus::Communicator::give_up. The reason of the first call is kept.
ANNULUS_EXPORT annulus_status annulus_communicator_give_up(annulus_communicator* communicator,
                                                           const char* reason);

// ---- Rings

typedef struct annulus_ring annulus_ring;

// The C form of annulus::Sharding.
typedef enum annulus_sharding {
  ANNULUS_CONTIGUOUS = 1,  // rank r holds piece r of P
  ANNULUS_ZIGZAG = 2       // rank r holds pieces r and 2 P - 1 - r of 2 P
} annulus_sharding;

// The C form of annulus::Route.
typedef enum annulus_route {
  ANNULUS_ROUTE_AUTO = 0,    // the route with fewer bytes to send, then fewer rounds
  ANNULUS_ROUTE_DIRECT = 1,  // in one hop
  ANNULUS_ROUTE_RING = 2     // from neighbour to neighbour in the shorter direction
} annulus_route;

// Rows [start, start + length) of the whole problem.
typedef struct annulus_segment {
  int64_t start;
  int64_t length;
} annulus_segment;

// The rows that one rank holds, in the order of its tensors' rows: q of Q, O and LSE, k of K and V.
typedef struct annulus_shard {
  const annulus_segment* q;
  size_t q_count;
  const annulus_segment* k;
  size_t k_count;
} annulus_shard;

// The C form of annulus::RingOptions, and the shards.
typedef struct annulus_ring_options {
  size_t struct_size;
  int32_t sharding;             // annulus_sharding, if `shards` is null
  int32_t multiple;             // pieces begin at multiples of this number of rows; 0: chosen
  const annulus_shard* shards;  // one for each rank; null: made by `sharding`
  const char* config;           // a kernel configuration; null: tuned, else chosen
  // Options of the ring's launches; null: the defaults. plans->config must be null if `config` is
  // set. kv_splits above 1 is ANNULUS_UNSUPPORTED.
  const annulus_plan_options* plans;
  int64_t route;       // annulus_route
  size_t shard_count;  // entries of `shards`, for a check; 0: not checked
} annulus_ring_options;
#define ANNULUS_RING_OPTIONS_INIT \
  { sizeof(annulus_ring_options), ANNULUS_CONTIGUOUS, 0, NULL, NULL, NULL, ANNULUS_ROUTE_AUTO, 0 }

// Calls annulus::plan_ring: `devices` has one handle for each rank, and a device may occur several
// times. The ring keeps what it needs of the devices alive.
ANNULUS_EXPORT annulus_status annulus_ring_create(annulus_device* const* devices, size_t ranks,
                                                  const annulus_problem* problem,
                                                  const annulus_ring_options* options,
                                                  annulus_ring** ring);

// Waits for the devices, so it must not be called while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_ring_destroy(annulus_ring* ring);

// Calls annulus::ring_step: writes the problem to pass to annulus_tuning_create (annulus/c_tune.h)
// with the device of rank 0. It points to the texts and the layout of `problem`.
ANNULUS_EXPORT annulus_status annulus_ring_get_step(size_t ranks, const annulus_problem* problem,
                                                    const annulus_ring_options* options,
                                                    annulus_problem* step);

// The C form of annulus::RingInfo.
typedef struct annulus_ring_info {
  size_t struct_size;
  const char* kernel;
  const char* config;
  const char* tuned;     // the tuned result that has the configuration; empty: none
  const char* schedule;  // lines, one for each rank and step
  int64_t ranks;
  int64_t bytes_sent;        // by all ranks together, in one run
  int64_t bytes_plain_ring;  // bytes sent if every shard went to every rank
  double plan_ms;            // time to decide
  double compile_ms;         // time to find or compile the kernels and to upload the lists
  const char* route_reason;  // a sentence: why this route
  int64_t route;             // annulus_route, never ANNULUS_ROUTE_AUTO
  int64_t rounds;
  int64_t messages;       // messages of all ranks together, in one run; bytes_* are too
  int64_t bytes_needed;   // each row once for each rank, except its owner, that sees it
  int64_t bytes_relayed;  // bytes received only to pass them on
} annulus_ring_info;
#define ANNULUS_RING_INFO_INIT \
  { sizeof(annulus_ring_info), NULL, NULL, NULL, NULL, 0, 0, 0, 0.0, 0.0, NULL, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_ring_get_info(annulus_ring* ring, annulus_ring_info* info);

// The C form of annulus::RingRankInfo.
typedef struct annulus_ring_rank {
  size_t struct_size;
  const char* device;
  annulus_shard shard;  // its arrays belong to the ring
  int64_t rows_q;       // rows of the shard
  int64_t rows_k;
  int64_t launches;  // launches of attention kernels
  int64_t full_tiles;
  int64_t partial_tiles;
  int64_t bytes_sent;
  int64_t bytes_received;
  int64_t workspace_bytes;  // scratch memory of a run, separate for each run in flight; may be 0
  int64_t device_bytes;     // memory that the ring holds for the rank
  // The predicted time of its attention kernels in sequence and its range, without copies.
  double predicted_micros;
  double min_micros;
  double max_micros;
  int64_t rank;
} annulus_ring_rank;
#define ANNULUS_RING_RANK_INIT                                                                     \
  {                                                                                                \
    sizeof(annulus_ring_rank), NULL, {NULL, 0, NULL, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, \
        0                                                                                          \
  }

ANNULUS_EXPORT annulus_status annulus_ring_get_rank(annulus_ring* ring, size_t rank,
                                                    annulus_ring_rank* info);

// The arguments of one rank for a run.
typedef struct annulus_ring_call {
  size_t struct_size;                // the same in all elements of an array
  void* stream;                      // a CUstream of the rank's device
  const annulus_operands* operands;  // tensors with the rows of its shard
  void* workspace;                   // workspace_bytes, 256-byte aligned
} annulus_ring_call;
#define ANNULUS_RING_CALL_INIT \
  { sizeof(annulus_ring_call), NULL, NULL, NULL }

// Puts the work of all ranks on their streams and returns (see annulus::RingPlan::run). It
// allocates nothing, takes no lock and does not wait, and a capture must have all streams.
ANNULUS_EXPORT annulus_status annulus_ring_run(annulus_ring* ring, const annulus_ring_call* calls,
                                               size_t count);

// ---- One rank of a ring

typedef struct annulus_ring_rank_plan annulus_ring_rank_plan;

// Calls annulus::plan_ring over a communicator, which all ranks call together. The plan keeps what
// it needs of device and communicator alive. Errors are the same on every rank. But unreadable
// arguments (a null, a pattern with a syntax error) fail only on this rank, while the others wait
// for it until the deadline.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_create(annulus_device* device,
                                                            annulus_communicator* communicator,
                                                            const annulus_problem* problem,
                                                            const annulus_ring_options* options,
                                                            annulus_ring_rank_plan** plan);

// Waits for the device, so it must not be called while a stream is being captured.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_destroy(annulus_ring_rank_plan* plan);

// The schedule has only this rank; totals are for all ranks.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_get_info(annulus_ring_rank_plan* plan,
                                                              annulus_ring_info* info);

// Stores this rank's part.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_get_rank(annulus_ring_rank_plan* plan,
                                                              annulus_ring_rank* info);

// Puts this rank's work on its streams and returns when NCCL has queued its messages;
// annulus::RingRankPlan::run. *run is its number; `run` may be null.
ANNULUS_EXPORT annulus_status annulus_ring_rank_plan_run(annulus_ring_rank_plan* plan,
                                                         const annulus_ring_call* call,
                                                         int64_t* run);

// ---- Joins

typedef struct annulus_join_plan annulus_join_plan;
typedef struct annulus_gather_plan annulus_gather_plan;

// The slice of the result that a rank receives (see annulus::JoinedSlices).

typedef enum annulus_joined_slices {
  ANNULUS_JOIN_ALL = 1,    // all rows of all heads
  ANNULUS_JOIN_HEADS = 2,  // all rows of the rank's heads
  ANNULUS_JOIN_ROWS = 3    // the rank's rows of all heads
} annulus_joined_slices;

// Stores the rows or heads [*begin, *end) of slice `rank` of `ranks` slices of `count`.
ANNULUS_EXPORT annulus_status annulus_join_slice(int64_t count, int32_t ranks, int32_t rank,
                                                 int64_t* begin, int64_t* end);

// The C form of annulus::JoinProblem.
typedef struct annulus_join_problem {
  size_t struct_size;
  int64_t heads;        // H >= 1
  int64_t dim_v;        // Dv: a multiple of 8 from 8 to 1024
  int64_t max_rows;     // the most rows of a run; at least 1
  int32_t dtype;        // dtype of every O: ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
  int32_t lse_base;     // annulus_lse_base of every LSE, on every rank
  int32_t slices;       // annulus_joined_slices
  int32_t form;         // annulus_partial_form of the partial results
  int32_t carry_out;    // 0 or 1, with ANNULUS_PARTIAL_STATES: write the state
  int32_t sink_logits;  // 0 or 1: annulus_join_operands.sink_logits is set; not with carry_out
} annulus_join_problem;
#define ANNULUS_JOIN_PROBLEM_INIT                                                 \
  {                                                                               \
    sizeof(annulus_join_problem), 1, 0, 0, ANNULUS_BFLOAT16, ANNULUS_LSE_NATURAL, \
        ANNULUS_JOIN_ALL, ANNULUS_PARTIAL_OUTPUTS, 0, 0                           \
  }

// Checks the problem without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status annulus_join_problem_validate(const annulus_join_problem* problem);

// Calls annulus::plan_join. Every rank calls it, and no rank waits for another. The plan keeps what
// it needs of device and communicator alive.
ANNULUS_EXPORT annulus_status annulus_join_plan_create(annulus_device* device,
                                                       annulus_communicator* communicator,
                                                       const annulus_join_problem* problem,
                                                       annulus_join_plan** plan);

// Calls no driver: runs that were queued before may still be executing.
ANNULUS_EXPORT annulus_status annulus_join_plan_destroy(annulus_join_plan* plan);

// The C form of annulus::JoinInfo.
typedef struct annulus_join_plan_info {
  size_t struct_size;
  const char* reason;  // why this number of exchanges
  double compile_ms;   // time to find or compile the kernels
  int64_t rank;
  int64_t ranks;
  int64_t exchanges;   // groups of messages in sequence in a run of max_rows
  int64_t bytes_sent;  // bytes that this rank sends in such a run
} annulus_join_plan_info;
#define ANNULUS_JOIN_PLAN_INFO_INIT \
  { sizeof(annulus_join_plan_info), NULL, 0.0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_join_plan_get_info(annulus_join_plan* plan,
                                                         annulus_join_plan_info* info);

// Stores the bytes of scratch memory that a run of max_rows needs, 256-byte aligned.
ANNULUS_EXPORT annulus_status annulus_join_plan_workspace_bytes(annulus_join_plan* plan,
                                                                size_t* bytes);

// The C form of annulus::JoinOperands: the tensors of one run, in device memory.
typedef struct annulus_join_operands {
  size_t struct_size;
  int64_t rows;              // 0 to max_rows, the same on every rank
  const void* o;             // [rows, H, Dv]: this rank's partial result
  const float* lse;          // [rows, H] in any order
  annulus_state state;       // the input with ANNULUS_PARTIAL_STATES instead: contiguous, only read
  const float* sink_logits;  // [H], the same on every rank
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  void* joined_o;              // [rows of the slice, heads of the slice, Dv]
  float* joined_lse;           // [rows of the slice, heads of the slice]; null: not written
  annulus_state joined_state;  // the contiguous state to write with carry_out
  annulus_row_strides joined_o_strides;
  annulus_row_strides joined_lse_strides;
} annulus_join_operands;
#define ANNULUS_JOIN_OPERANDS_INIT                                                                \
  {                                                                                               \
    sizeof(annulus_join_operands), 0, NULL, NULL, {NULL, NULL, NULL}, NULL, {0, 0}, {0, 0}, NULL, \
        NULL, {NULL, NULL, NULL}, {0, 0}, {                                                       \
      0, 0                                                                                        \
    }                                                                                             \
  }

// Puts the work on `stream` and returns when NCCL has queued its messages (see
// annulus::JoinPlan::run).
ANNULUS_EXPORT annulus_status annulus_join_plan_run(annulus_join_plan* plan, void* stream,
                                                    const annulus_join_operands* operands,
                                                    void* workspace);

// ---- Gathering queries of all heads

// The C form of annulus::GatherProblem.
typedef struct annulus_gather_problem {
  size_t struct_size;
  int64_t heads;     // H >= 1, of all ranks together
  int64_t dim;       // head dim: a multiple of 8 from 8 to 1024
  int64_t max_rows;  // the most rows of a run; at least 1
  int64_t dtype;     // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
} annulus_gather_problem;
#define ANNULUS_GATHER_PROBLEM_INIT \
  { sizeof(annulus_gather_problem), 1, 0, 0, ANNULUS_BFLOAT16 }

// Calls annulus::plan_gather.
ANNULUS_EXPORT annulus_status annulus_gather_plan_create(annulus_device* device,
                                                         annulus_communicator* communicator,
                                                         const annulus_gather_problem* problem,
                                                         annulus_gather_plan** plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_destroy(annulus_gather_plan* plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_workspace_bytes(annulus_gather_plan* plan,
                                                                  size_t* bytes);

// The C form of annulus::GatherOperands.
typedef struct annulus_gather_operands {
  size_t struct_size;
  int64_t rows;    // 0 to max_rows, the same on every rank
  const void* q;   // [rows, heads of this rank, dim]; ignored if the rank has no heads
  void* gathered;  // [rows, H, dim]
  annulus_row_strides q_strides;
  annulus_row_strides gathered_strides;
} annulus_gather_operands;
#define ANNULUS_GATHER_OPERANDS_INIT                                 \
  {                                                                  \
    sizeof(annulus_gather_operands), 0, NULL, NULL, {0, 0}, { 0, 0 } \
  }

// Puts a launch, one exchange, and a launch on `stream`, like annulus_join_plan_run.
ANNULUS_EXPORT annulus_status annulus_gather_plan_run(annulus_gather_plan* plan, void* stream,
                                                      const annulus_gather_operands* operands,
                                                      void* workspace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_RING_H_
