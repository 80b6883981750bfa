#ifndef ANNULUS_C_COMMUNICATOR_H_
#define ANNULUS_C_COMMUNICATOR_H_

// The C interface of ranks that exchange bytes over NCCL: annulus/communicator.h, which explains
// messages, their order and what happens when a rank dies. The conventions are those at the top of
// annulus/c.h, but a call of a communicator may wait for the other ranks, up to a deadline, and one
// thread at a time may be inside: another one that comes meanwhile gets ANNULUS_INVALID_ARGUMENT.
//
//   annulus_communicator_open(device, &id, 4, rank, NULL, &ranks);   an id that rank 0 made
//   annulus_communicator_meet(device, meeting, NULL, &ranks);        nothing to send an id by
//   annulus_communicator_borrow(device, comm, NULL, &options, &ranks);   an engine's ncclComm_t

#include "annulus/c_rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

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

// "under way", "good", "void"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_run_state_text(int state);

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

// "opened", "slow", "gone", "given up"; "?" for any other number.
ANNULUS_EXPORT const char* annulus_communicator_event_text(int kind);

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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_COMMUNICATOR_H_
