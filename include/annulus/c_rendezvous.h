#ifndef ANNULUS_C_RENDEZVOUS_H_
#define ANNULUS_C_RENDEZVOUS_H_

// The C interface of ranks that find each other, and of the control channel between them:
// annulus/rendezvous.h, which explains what travels and who may read it. The conventions are those
// at the top of annulus/c.h.
//
//   annulus_rendezvous_options options = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
//   options.address = "tcp:10.0.0.1:29500", options.token = job;
//   options.rank = rank, options.ranks = 4;
//   annulus_rendezvous_meet(&options, &meeting);            on every rank
//   annulus_communicator_meet(device, meeting, NULL, &ranks);   annulus/c_communicator.h

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_rendezvous annulus_rendezvous;

typedef struct annulus_rendezvous_options {
  size_t struct_size;
  // "tcp:HOST:PORT", where rank 0 listens, or "file:PATH", a file that rank 0 writes;
  // annulus/rendezvous.h. Null: none, which one rank alone and annulus_rendezvous_over do without.
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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_RENDEZVOUS_H_
