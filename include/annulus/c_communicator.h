#ifndef ANNULUS_C_COMMUNICATOR_H_
#define ANNULUS_C_COMMUNICATOR_H_

// The C interface of ranks that exchange bytes over NCCL: annulus/communicator.h, which explains
// messages, their order and what happens when a rank dies. The conventions are those at the top of
// annulus/c.h, but a call of a communicator may wait for the other ranks, up to a deadline, and one
// thread at a time may be inside: another one that comes meanwhile gets ANNULUS_INVALID_ARGUMENT.
//
//   annulus_communicator_open(device, &id, 4, rank, NULL, &ranks);   an id that rank 0 made
//   annulus_communicator_meet(device, meeting, NULL, &ranks);        nothing to send an id by
//   annulus_communicator_borrow(device, comm, &options, &ranks);     an ncclComm_t of the engine's

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
  int64_t blocking;
  int64_t deadline_ms;  // how long a group may take to be queued; 0: any time
  // How long ranks may take to meet and to plan together, as they compile kernels; 0: any time.
  int64_t planning_ms;
} annulus_communicator_options;

#define ANNULUS_COMMUNICATOR_OPTIONS_INIT \
  { sizeof(annulus_communicator_options), 0, 30000, 600000 }

// Meets the other ranks, which all call it with the same id. Null options are the defaults. Errors
// are ANNULUS_INVALID_ARGUMENT for a rank outside [0, ranks), and where ranks differ in what they
// brought or share a device; ANNULUS_LIBRARY for an NCCL that is missing or does not go with the
// device; and ANNULUS_COMMUNICATION where the others have not come within planning_ms.
ANNULUS_EXPORT annulus_status annulus_communicator_open(annulus_device* device,
                                                        const annulus_communicator_id* id,
                                                        int32_t ranks, int32_t rank,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// The same among ranks that have met, who all call it: rank 0 makes the id, and the others get it.
// What fails on one before NCCL is called (no NCCL, no id) is returned on every rank, with the code
// of that rank's error and its number in the text. Errors are also those of
// annulus_rendezvous_all_gather.
ANNULUS_EXPORT annulus_status annulus_communicator_meet(annulus_device* device,
                                                        annulus_rendezvous* rendezvous,
                                                        const annulus_communicator_options* options,
                                                        annulus_communicator** communicator);

// Uses an engine's ncclComm_t, which stays the engine's: it is never finalized, destroyed, revoked
// or aborted here, and no other thread may call NCCL with it during a call of this handle. The
// engine destroys it behind the handle and all plans that were made with it. `blocking` of the
// options has to say whether it is blocking. ANNULUS_INVALID_ARGUMENT where it is null, on another
// device than `device`, or not ready.
ANNULUS_EXPORT annulus_status annulus_communicator_borrow(
    annulus_device* device, void* nccl_comm, const annulus_communicator_options* options,
    annulus_communicator** communicator);

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
  int32_t blocking;   // 0 or 1
  int32_t borrowed;   // 0 or 1
  int64_t simulated;  // 0 or 1
} annulus_communicator_info;

#define ANNULUS_COMMUNICATOR_INFO_INIT \
  { sizeof(annulus_communicator_info), NULL, 0, 0, 0, 0, 0, 0 }

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
// device. An array without elements may be null. Captured only where the communicator is blocking,
// and not as the first group between two ranks, which connects them.
//
// Errors are ANNULUS_INVALID_ARGUMENT for a rank out of range or null memory, before anything is
// queued; ANNULUS_UNSUPPORTED for a capture that is not possible; and ANNULUS_COMMUNICATION where
// NCCL fails or the deadline passes, after which the communicator is given up.
ANNULUS_EXPORT annulus_status annulus_communicator_exchange(
    annulus_communicator* communicator, void* stream, const annulus_sent_bytes* sends,
    size_t send_count, const annulus_received_bytes* receives, size_t receive_count);

// Why the communicator was given up; null while it is usable. Any thread.
ANNULUS_EXPORT annulus_status annulus_communicator_get_reason(annulus_communicator* communicator,
                                                              const char** reason);

// Gives it up: what is under way ends without its messages, what was to be received then holds
// anything, and every later call returns ANNULUS_COMMUNICATION. A communicator of the engine's is
// only left alone. The reason of the first call stays.
ANNULUS_EXPORT annulus_status annulus_communicator_give_up(annulus_communicator* communicator,
                                                           const char* reason);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_COMMUNICATOR_H_
