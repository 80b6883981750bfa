#ifndef ANNULUS_C_RING_H_
#define ANNULUS_C_RING_H_

// The C interface of ranks that find each other, and of the control channel between them:
// annulus/communicator.h, which explains what travels and who may read it. The conventions are
// those at the top of annulus/c.h.
//
//   annulus_rendezvous_options options = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
//   options.address = "tcp:10.0.0.1:29500", options.token = job;
//   options.rank = rank, options.ranks = 4;
//   annulus_rendezvous_meet(&options, &meeting);            on every rank
//   annulus_communicator_meet(device, meeting, NULL, &ranks);   annulus/c_ring.h

#include "annulus/c.h"
#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_rendezvous annulus_rendezvous;

typedef struct annulus_rendezvous_options {
  size_t struct_size;
  // "tcp:HOST:PORT", where rank 0 listens, or "file:PATH", a file that rank 0 writes;
  // annulus/communicator.h. Null: none, which one rank alone and annulus_rendezvous_over do
  // without.
  const char* address;
  // 1 to 63 bytes that all ranks of the session bring, and nobody else does.
  const char* token;
  // The IP address to listen on. Null: on rank 0 that of HOST, on the others the one from which
  // they reach rank 0, and 127.0.0.1 with "file:" and annulus_rendezvous_over.
  const char* listen_on;
  int32_t rank;
  int32_t ranks;        // at most 1024
  int64_t deadline_ms;  // how long the meeting may take, from 1 to a day; it ends 1 s later at most
} annulus_rendezvous_options;

#define ANNULUS_RENDEZVOUS_OPTIONS_INIT \
  { sizeof(annulus_rendezvous_options), NULL, NULL, NULL, 0, 1, 30000 }

// Meets the other ranks, which all call it with the same address, ranks and token. Errors are
// ANNULUS_INVALID_ARGUMENT for wrong options, where ranks differ in what they bring, and where one
// may not open a descriptor for each other rank and eight besides (ulimit -n);
// ANNULUS_FILE where the file cannot be written, or none came that can be trusted; and
// ANNULUS_COMMUNICATION where ranks have not come within the deadline or have gone meanwhile, or
// the address cannot be listened on. The text names the ranks.
ANNULUS_EXPORT annulus_status annulus_rendezvous_meet(const annulus_rendezvous_options* options,
                                                      annulus_rendezvous** rendezvous);

// An all-gather of the engine's: takes `bytes` bytes of this rank, as many on every rank, writes
// those of all ranks to `all` in their order, ranks * bytes, and returns 0. It is called once, on
// the thread that called the library. Any other return value makes that call return
// ANNULUS_COMMUNICATION.
typedef int (*annulus_all_gather_callback)(void* user, const void* own, size_t bytes, void* all);

// Meets where the engine has an all-gather already, through which the ranks' addresses travel.
// The options' address is not used, and the token may be null. Nothing of `user` is kept.
ANNULUS_EXPORT annulus_status annulus_rendezvous_over(annulus_all_gather_callback all_gather,
                                                      void* user,
                                                      const annulus_rendezvous_options* options,
                                                      annulus_rendezvous** rendezvous);

// Ends this rank's connections, for which it waits up to half a second until what was sent has
// arrived. What was made over it, communicators and plans, keeps them until it is destroyed too.
ANNULUS_EXPORT annulus_status annulus_rendezvous_destroy(annulus_rendezvous* rendezvous);

typedef struct annulus_rendezvous_info {
  size_t struct_size;
  int32_t rank;
  int32_t ranks;
  // 1 where the ranks have met, and one more each time that they have regrouped. Two parts of a
  // ring that was cut may both be in generation 2 (annulus_regroup_options.at_least): a generation
  // is this number and members_digest.
  int64_t generation;
  const int32_t* members;   // [ranks]: the number that each rank had in generation 1
  uint64_t members_digest;  // of `members`; the same on all of them and on every machine
} annulus_rendezvous_info;

#define ANNULUS_RENDEZVOUS_INFO_INIT \
  { sizeof(annulus_rendezvous_info), 0, 0, 0, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_rendezvous_get_info(annulus_rendezvous* rendezvous,
                                                          annulus_rendezvous_info* info);

// The most bytes of one rank in a call of annulus_rendezvous_all_gather and _gather.
#define ANNULUS_MOST_GATHERED_BYTES 65536

// Gives every rank the bytes of all. All ranks call it equally often; calls are numbered, so a rank
// may be a call ahead of another. Where it returns ANNULUS_OK, its own bytes reach the others even
// if this process dies then. `all` has room for `room` bytes of each rank, those of rank r at r *
// room, and counts[r] is how many came; counts may be null where all ranks bring `room` bytes.
// deadline_ms is from 1 to a day. One thread at a time calls it or annulus_rendezvous_gather.
//
// Errors are ANNULUS_INVALID_ARGUMENT for more than ANNULUS_MOST_GATHERED_BYTES, a wrong deadline,
// a second thread, and, behind the call, a rank that brought more than there is room for, or
// another number than `room` where counts is null; and ANNULUS_COMMUNICATION that names the ranks
// that have gone or are late, after the others have come. A call that failed so counts as one.
ANNULUS_EXPORT annulus_status annulus_rendezvous_all_gather(annulus_rendezvous* rendezvous,
                                                            const void* own, size_t bytes,
                                                            int64_t deadline_ms, void* all,
                                                            size_t room, size_t* counts);

// Whether the bytes of a rank came.
typedef enum annulus_arrival {
  ANNULUS_CAME = 0,
  ANNULUS_GONE = 1,  // its connection ended before
  ANNULUS_LATE = 2   // they had not come at the deadline
} annulus_arrival;

// Gathers as annulus_rendezvous_all_gather does, and says in arrivals[r], an annulus_arrival for
// each rank, who has gone or is late where that fails; their counts are 0. Ranks that go on without
// others use it: ranks may differ in whether they still heard of one that was dying.
ANNULUS_EXPORT annulus_status annulus_rendezvous_gather(annulus_rendezvous* rendezvous,
                                                        const void* own, size_t bytes,
                                                        int64_t deadline_ms, void* all, size_t room,
                                                        size_t* counts, int32_t* arrivals);

// How far a rank has come; the numbers mean what the ranks agree on.
typedef struct annulus_position {
  int64_t generation;
  int64_t run;
  int64_t round;
} annulus_position;

// Tells the other ranks how far this one has come. Neither waits nor allocates nor takes a lock;
// where positions follow each other quickly, some are left out, never the last one. One thread at a
// time: another one that comes meanwhile gets ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_rendezvous_post(annulus_rendezvous* rendezvous,
                                                      const annulus_position* position);

// What is known of another rank.
typedef struct annulus_rank_state {
  size_t struct_size;
  const char* reason;         // why it has gone; empty: it has not
  annulus_position position;  // the last one that has come
  int32_t posted;             // 0 or 1: whether a position has come from it
  int32_t gone;               // 0 or 1: its connection has ended; never of one that is merely late
  int64_t silent_ms;          // since the position came; 0 where none has
} annulus_rank_state;

#define ANNULUS_RANK_STATE_INIT \
  { sizeof(annulus_rank_state), NULL, {0, 0, 0}, 0, 0, 0 }

// `rank` is another one than this.
ANNULUS_EXPORT annulus_status annulus_rendezvous_get_state(annulus_rendezvous* rendezvous,
                                                           int32_t rank, annulus_rank_state* state);

// ---- Going on without some

typedef struct annulus_regroup_options {
  size_t struct_size;
  // Ranks that are left out although they are there, as those that were late
  // (annulus_communicator_failure.blamed). A rank that finds its own number here does not go on.
  const int32_t* without;
  size_t without_count;
  // The least number of ranks that may go on. If it is 0, the ranks that are left go on only if
  // they are more than half of all ranks, or half of them with rank 0 among them. Then at most one
  // of the two parts goes on if a ring was cut into two.
  int64_t at_least;
  // From 1 to a day. Ranks that have not come by half of it are left out too.
  int64_t deadline_ms;
} annulus_regroup_options;

#define ANNULUS_REGROUP_OPTIONS_INIT \
  { sizeof(annulus_regroup_options), NULL, 0, 0, 5000 }

// Goes on with those that are left, as ranks 0, 1, ... in the same order, over the connections that
// they have. All that are to go on call it, within half of the deadline, and get the same members.
// `rendezvous` is of no use afterwards but to be destroyed, and communicators that were opened over
// it are given up. Ranks that are left out find that the others go on without them. Null options
// are the defaults. Errors are ANNULUS_INVALID_ARGUMENT for wrong options and a second thread, and
// ANNULUS_COMMUNICATION if fewer than at_least are left, if `without` names this rank, if the
// others have left this rank out, or if not all agree within the deadline; it may be tried again
// then.
ANNULUS_EXPORT annulus_status annulus_rendezvous_regroup(annulus_rendezvous* rendezvous,
                                                         const annulus_regroup_options* options,
                                                         annulus_rendezvous** regrouped);

// The C interface of ranks that exchange bytes over NCCL: annulus/communicator.h, which explains
// messages, their order and what happens when a rank dies. The conventions are those at the top of
// annulus/c.h, but a call of a communicator may wait for the other ranks, up to a deadline, and one
// thread at a time may be inside: another one that comes meanwhile gets ANNULUS_INVALID_ARGUMENT.
//
//   annulus_communicator_open(device, &id, 4, rank, NULL, &ranks);   an id that rank 0 made
//   annulus_communicator_meet(device, meeting, NULL, &ranks);        nothing to send an id by
//   annulus_communicator_borrow(device, comm, NULL, &options, &ranks);   an engine's ncclComm_t

typedef struct annulus_communicator annulus_communicator;

// What the ranks of one communicator share: an ncclUniqueId.
typedef struct annulus_communicator_id {
  char bytes[128];
} annulus_communicator_id;

// This process serves the others when they meet, so it must live until all have. Errors are
// ANNULUS_LIBRARY where NCCL is not found, and ANNULUS_COMMUNICATION.
ANNULUS_EXPORT annulus_status annulus_communicator_make_id(annulus_device* device,
                                                           annulus_communicator_id* id);

typedef struct annulus_communicator_options {
  size_t struct_size;
  // 0 or 1: whether NCCL's calls wait until they are done, which captured exchanges need; then a
  // rank whose peer has died may wait in NCCL for ever, whatever the deadline.
  int32_t blocking;
  // 0 or 1: whether a thread of the library watches what is under way. Without it the deadline of
  // what the device does is kept only inside of annulus_communicator_get_state and _wait.
  int32_t watched;
  // How long a group may take to be queued, and how long its messages may take from when the device
  // has come to them; 0: any time.
  int64_t deadline_ms;
  // How long ranks may take to meet and to plan together, as they compile kernels; 0: any time.
  int64_t planning_ms;
  // The most CTAs of NCCL's kernels, from 1 to 32; rings leave as many multiprocessors free.
  int64_t ctas;
} annulus_communicator_options;

#define ANNULUS_COMMUNICATOR_OPTIONS_INIT \
  { sizeof(annulus_communicator_options), 0, 1, 30000, 600000, 8 }

// Meets the other ranks, which all call it with the same id. Null options are the defaults. Errors
// are ANNULUS_INVALID_ARGUMENT for a rank outside [0, ranks), and where ranks differ in what they
// brought or share a device; ANNULUS_LIBRARY for an NCCL that is missing or does not go with the
// device; and ANNULUS_COMMUNICATION where the others have not come within planning_ms.
ANNULUS_EXPORT annulus_status annulus_communicator_open(annulus_device* device,
                                                        const annulus_communicator_id* id,
                                                        int32_t ranks, int32_t rank,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// Opens it among ranks that have met, who all call it: rank 0 makes the id, and the others get it.
// From then on the communicator and what is planned over it talk on the rendezvous: who is late or
// has gone is named on every rank. What fails on one before NCCL is called (no NCCL, no id) is
// returned on every rank, with the code of that rank's error and its number in the text. Errors are
// also those of annulus_rendezvous_all_gather.
ANNULUS_EXPORT annulus_status annulus_communicator_meet(annulus_device* device,
                                                        annulus_rendezvous* rendezvous,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// Uses an engine's ncclComm_t, which stays the engine's: it is never finalized, destroyed, revoked
// or aborted here, and no other thread may call NCCL with it during a call of this handle. The
// engine destroys it behind the handle and all plans that were made with it. `blocking` of the
// options has to say whether it is blocking. On `rendezvous`, of the same ranks, they tell each
// other who is late or has gone; null: they do not. ANNULUS_INVALID_ARGUMENT where the ncclComm_t
// is null, on another device than `device`, or not ready.
ANNULUS_EXPORT annulus_status annulus_communicator_borrow(
    annulus_device* device, void* nccl_comm, annulus_rendezvous* rendezvous,
    const annulus_communicator_options* options, annulus_communicator** communicator);

// Plans that were made with the communicator stay usable. The last of them and the handle ends it,
// where all is well together with the other ranks of its host, for which it waits no longer than
// the deadline. A call of another thread that is inside ends first.
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
  int64_t generation;       // the rendezvous'; 0 without one
  int64_t ctas;             // annulus_communicator_options.ctas
  uint64_t members_digest;  // the rendezvous'; 0 without one
} annulus_communicator_info;

#define ANNULUS_COMMUNICATOR_INFO_INIT \
  { sizeof(annulus_communicator_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_get_info(annulus_communicator* communicator,
                                                            annulus_communicator_info* info);

// Bytes that go to another rank, and bytes that come from one. Device memory.
typedef struct annulus_sent_bytes {
  const void* from;
  size_t bytes;
  int64_t to;  // the rank
} annulus_sent_bytes;
typedef struct annulus_received_bytes {
  void* to;
  size_t bytes;
  int64_t from;  // the rank
} annulus_received_bytes;

// Puts one group of messages on `stream`, behind the work that is there, and returns when NCCL has
// queued it, which may take until the peers' hosts have called too; it does not wait for the
// device. It is a run of its own, whose number goes to *run (may be null), on every rank: one that
// has no messages calls it with none. An array without elements may be null. Captured only where
// the communicator is blocking, and not as the first group between two ranks, which connects them.
//
// Errors are ANNULUS_INVALID_ARGUMENT for a rank out of range or null memory, before anything is
// queued; ANNULUS_UNSUPPORTED for a capture that is not possible; and ANNULUS_COMMUNICATION where
// NCCL fails or the deadline passes, after which the communicator is given up.
ANNULUS_EXPORT annulus_status annulus_communicator_exchange(
    annulus_communicator* communicator, void* stream, const annulus_sent_bytes* sends,
    size_t send_count, const annulus_received_bytes* receives, size_t receive_count, int64_t* run);

// Device memory for what is sent and received, as workspaces of rings and joins are: NCCL allocates
// it and knows it, where it is 2.19 or newer, so that its kernels need no buffers of their own in
// between. Both ends of a message gain from that, or neither, so all ranks do the same. Any other
// memory is as right. In steps of 2 MiB; 0 bytes give null. What was not released is released with
// the handle.
ANNULUS_EXPORT annulus_status annulus_communicator_allocate(annulus_communicator* communicator,
                                                            size_t bytes, void** memory);
// Releases memory that annulus_communicator_allocate gave on this handle, once; work that uses it
// must have ended. Null does nothing.
ANNULUS_EXPORT annulus_status annulus_communicator_release(annulus_communicator* communicator,
                                                           void* memory);

// ---- What has become of runs

// Runs of everything that uses the communicator (exchanges, rings, joins) are numbered from 0, in
// the order in which they are put on streams; all ranks make the same ones. *runs is how many there
// are.
ANNULUS_EXPORT annulus_status annulus_communicator_get_runs(annulus_communicator* communicator,
                                                            int64_t* runs);

// Whether the messages of a run have come, as far as this rank is concerned.
typedef enum annulus_run_state {
  ANNULUS_RUN_UNDER_WAY = 1,  // not all of them yet
  ANNULUS_RUN_GOOD = 2,       // all of them
  ANNULUS_RUN_VOID = 3        // they will not: what the run computed, or will, is worth nothing
} annulus_run_state;

// *state is an annulus_run_state. Runs that a graph was captured of have none. Any thread.
// ANNULUS_INVALID_ARGUMENT for a run that there has not been.
ANNULUS_EXPORT annulus_status annulus_communicator_get_state(annulus_communicator* communicator,
                                                             int64_t run, int32_t* state);
// Waits on the host until the run is good or void: for what is in front of it on its stream, and
// then no longer than the deadline for each round. A void run is no error of this call. Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_wait(annulus_communicator* communicator,
                                                        int64_t run, int32_t* state);

// Why the communicator was given up.
typedef struct annulus_communicator_failure {
  size_t struct_size;
  const char* reason;     // null while it is usable
  const int32_t* blamed;  // the ranks whose fault that was, if anybody's
  size_t blamed_count;
} annulus_communicator_failure;

#define ANNULUS_COMMUNICATOR_FAILURE_INIT \
  { sizeof(annulus_communicator_failure), NULL, NULL, 0 }

// Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_get_failure(
    annulus_communicator* communicator, annulus_communicator_failure* failure);

// What has happened to a communicator; annulus::CommunicatorEventKind. Later versions may add some.
typedef enum annulus_communicator_event_kind {
  ANNULUS_EVENT_OPENED = 1,
  ANNULUS_EVENT_SLOW = 2,     // messages have taken more than half of the deadline; ranks are late
  ANNULUS_EVENT_GONE = 3,     // the connections to ranks have ended
  ANNULUS_EVENT_GIVEN_UP = 4  // it is given up, because of ranks
} annulus_communicator_event_kind;

typedef struct annulus_communicator_event {
  size_t struct_size;
  int64_t number;    // from 1; 0: there is none
  const char* text;  // a sentence
  const int32_t* ranks;
  size_t rank_count;
  int64_t unix_micros;  // when it was, from 1970 on
  int64_t generation;
  int64_t run;   // that the device was at
  int64_t kind;  // annulus_communicator_event_kind
} annulus_communicator_event;

#define ANNULUS_COMMUNICATOR_EVENT_INIT \
  { sizeof(annulus_communicator_event), 0, NULL, NULL, 0, 0, 0, 0, 0 }

// The oldest event whose number is larger than `after`; where there is none, its number is 0. The
// newest 64 are kept, and those that were told. Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_next_event(annulus_communicator* communicator,
                                                              int64_t after,
                                                              annulus_communicator_event* event);

// What is known of another rank: how far its device is (round -1: it has come to no round of that
// run yet), whether it has gone. ANNULUS_INVALID_ARGUMENT for this rank, and without a rendezvous.
// Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_get_peer(annulus_communicator* communicator,
                                                            int32_t rank,
                                                            annulus_rank_state* state);

// Gives it up, and tells the other ranks: what is under way ends without its messages, what was to
// be received then holds anything, and every later call returns ANNULUS_COMMUNICATION. A
// communicator of the engine's is only left alone. The reason of the first call stays.
ANNULUS_EXPORT annulus_status annulus_communicator_give_up(annulus_communicator* communicator,
                                                           const char* reason);

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
// give it to annulus_tuning_create (annulus/c_tune.h) with the device of rank 0. Its texts and its
// layout are those of `problem`. Null options are the defaults.
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

// The C interface of joining partial answers over ranks, and of gathering queries in front of that:
// annulus/join.h, which has the laws and what goes where. The conventions are those at the top of
// annulus/c.h, but a run may wait for the other ranks, as annulus_communicator_exchange does.
//
//   annulus_join_plan_create(device, ranks, &problem, &plan);        on every rank
//   annulus_join_plan_workspace_bytes(plan, &bytes);
//   annulus_join_plan_run(plan, stream, &operands, workspace);       once a layer, on every rank

typedef struct annulus_join_plan annulus_join_plan;
typedef struct annulus_gather_plan annulus_gather_plan;

// ---- Joins

typedef enum annulus_joined_slices {
  ANNULUS_JOIN_ALL = 1,    // every rank gets all rows of all heads
  ANNULUS_JOIN_HEADS = 2,  // a rank gets all rows of its heads
  ANNULUS_JOIN_ROWS = 3    // a rank gets its rows of all heads
} annulus_joined_slices;

// The rows, or heads, [*begin, *end) of slice `rank` of `ranks` of `count`.
// ANNULUS_INVALID_ARGUMENT where there is no such slice.
ANNULUS_EXPORT annulus_status annulus_join_slice(int64_t count, int32_t ranks, int32_t rank,
                                                 int64_t* begin, int64_t* end);

// annulus::JoinProblem.
typedef struct annulus_join_problem {
  size_t struct_size;
  int64_t heads;        // H >= 1
  int64_t dim_v;        // Dv: a multiple of 8 from 8 to 1024
  int64_t most_rows;    // of a run; at least 1
  int32_t dtype;        // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16: of all O
  int32_t lse_base;     // annulus_lse_base: of all LSE, on every rank
  int32_t slices;       // annulus_joined_slices
  int32_t form;         // annulus_partial_form of the partial answers
  int32_t carry_out;    // 0 or 1: leave the state over all keys; with ANNULUS_PARTIAL_STATES
  int32_t sink_logits;  // 0 or 1: annulus_join_operands.sink_logits are given; not with carry_out
} annulus_join_problem;

#define ANNULUS_JOIN_PROBLEM_INIT                                                 \
  {                                                                               \
    sizeof(annulus_join_problem), 1, 0, 0, ANNULUS_BFLOAT16, ANNULUS_LSE_NATURAL, \
        ANNULUS_JOIN_ALL, ANNULUS_PARTIAL_OUTPUTS, 0, 0                           \
  }

// Whether the problem is valid, without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status annulus_join_problem_validate(const annulus_join_problem* problem);

// Decides and compiles; every rank calls it, and none waits for another. The plan keeps what it
// needs of device and communicator. Errors are those of annulus_join_problem_validate,
// ANNULUS_INVALID_ARGUMENT for a communicator of another device, ANNULUS_UNSUPPORTED for more than
// ANNULUS_MOST_MERGE_INPUTS ranks, ANNULUS_COMPILE and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_join_plan_create(annulus_device* device,
                                                       annulus_communicator* communicator,
                                                       const annulus_join_problem* problem,
                                                       annulus_join_plan** plan);

// Calls no driver: runs that were queued before may still be under way.
ANNULUS_EXPORT annulus_status annulus_join_plan_destroy(annulus_join_plan* plan);

// Everything that was decided.
typedef struct annulus_join_plan_info {
  size_t struct_size;
  const char* reason;  // why it is done in so many exchanges
  double compile_ms;   // time to get the kernels, whatever their source
  int64_t rank;
  int64_t ranks;
  int64_t exchanges;   // groups of messages, one after another, of a run of most_rows
  int64_t bytes_sent;  // by this rank in such a run
} annulus_join_plan_info;

#define ANNULUS_JOIN_PLAN_INFO_INIT \
  { sizeof(annulus_join_plan_info), NULL, 0.0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_join_plan_get_info(annulus_join_plan* plan,
                                                         annulus_join_plan_info* info);

// Scratch memory that any run needs, 256-byte aligned: what is sent and what comes.
ANNULUS_EXPORT annulus_status annulus_join_plan_workspace_bytes(annulus_join_plan* plan,
                                                                size_t* bytes);

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work on the stream has ended. Base addresses of O and acc are multiples of 16 bytes, others of 4;
// strides count elements, those of O multiples of 8. What is written overlaps nothing else.
typedef struct annulus_join_operands {
  size_t struct_size;
  int64_t rows;      // 0 to most_rows, the same on every rank
  const void* o;     // [rows, H, Dv]: this rank's partial answer
  const float* lse;  // [rows, H] in any order
  // With ANNULUS_PARTIAL_STATES in place of these two: contiguous. Only read.
  annulus_state state;
  const float* sink_logits;  // [H], the same on every rank
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  void* joined_o;              // [rows of the slice, heads of the slice, Dv]
  float* joined_lse;           // [rows of the slice, heads of the slice]; null: not written
  annulus_state joined_state;  // with carry_out in place of these two: contiguous
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

// Puts the work on `stream` and returns when NCCL has queued its messages. All ranks call it with
// as many rows. It allocates nothing of its own. ANNULUS_INVALID_ARGUMENT before anything is
// queued, and what annulus_communicator_exchange returns.
ANNULUS_EXPORT annulus_status annulus_join_plan_run(annulus_join_plan* plan, void* stream,
                                                    const annulus_join_operands* operands,
                                                    void* workspace);

// ---- Queries of all heads

// annulus::GatherProblem: rows of Q of which each rank has those of its heads
// (annulus_join_slice(heads, ranks, rank)), to all heads on all ranks.
typedef struct annulus_gather_problem {
  size_t struct_size;
  int64_t heads;      // H >= 1, of all ranks together
  int64_t dim;        // of a head: a multiple of 8 from 8 to 1024
  int64_t most_rows;  // of a run; at least 1
  int64_t dtype;      // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
} annulus_gather_problem;

#define ANNULUS_GATHER_PROBLEM_INIT \
  { sizeof(annulus_gather_problem), 1, 0, 0, ANNULUS_BFLOAT16 }

// As annulus_join_plan_create, with what the problem may have wrong.
ANNULUS_EXPORT annulus_status annulus_gather_plan_create(annulus_device* device,
                                                         annulus_communicator* communicator,
                                                         const annulus_gather_problem* problem,
                                                         annulus_gather_plan** plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_destroy(annulus_gather_plan* plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_workspace_bytes(annulus_gather_plan* plan,
                                                                  size_t* bytes);

// As annulus_join_operands.
typedef struct annulus_gather_operands {
  size_t struct_size;
  int64_t rows;    // 0 to most_rows, the same on every rank
  const void* q;   // [rows, heads of this rank, dim]; ignored where it has none
  void* gathered;  // [rows, H, dim]
  annulus_row_strides q_strides;
  annulus_row_strides gathered_strides;
} annulus_gather_operands;

#define ANNULUS_GATHER_OPERANDS_INIT                                 \
  {                                                                  \
    sizeof(annulus_gather_operands), 0, NULL, NULL, {0, 0}, { 0, 0 } \
  }

// As annulus_join_plan_run: a launch, one exchange, and a launch.
ANNULUS_EXPORT annulus_status annulus_gather_plan_run(annulus_gather_plan* plan, void* stream,
                                                      const annulus_gather_operands* operands,
                                                      void* workspace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_RING_H_
