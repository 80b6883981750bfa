/* Attention around a ring over an ncclComm_t that an engine already has. Two threads stand for two
 * processes of the engine. Each has a separate GPU, cuda:0 or cuda:1. The engine makes the
 * communicators and destroys them. Annulus borrows them in between. */
#define _POSIX_C_SOURCE 200112L /* for pthread_barrier_t */

#include <annulus/c_ring.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRanks = 2, kSeq = 600, kHeads = 4, kDim = 64 };

/* ---- The engine: NCCL as in nccl.h. A program that links NCCL includes nccl.h instead. */
typedef struct ncclComm* ncclComm_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;
static int (*get_unique_id)(ncclUniqueId*);
static int (*comm_init_rank)(ncclComm_t*, int, ncclUniqueId, int);
static int (*comm_destroy)(ncclComm_t);

static int open_nccl(void) {
  /* Annulus finds this library too, because the process has it open under the same name. */
  void* library = dlopen("libnccl.so.2", RTLD_NOW);
  void* found[3] = {NULL, NULL, NULL};
  if (library == NULL) return printf("%s\n", dlerror());
  found[0] = dlsym(library, "ncclGetUniqueId");
  found[1] = dlsym(library, "ncclCommInitRank");
  found[2] = dlsym(library, "ncclCommDestroy");
  memcpy(&get_unique_id, &found[0], sizeof found[0]);
  memcpy(&comm_init_rank, &found[1], sizeof found[1]);
  memcpy(&comm_destroy, &found[2], sizeof found[2]);
  return found[0] == NULL || found[1] == NULL || found[2] == NULL;
}

/* Does the same as cudaSetDevice, with the driver that Annulus has open. */
static int make_current(annulus_device* device) {
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  int (*retain)(void**, int) = NULL;
  int (*set_current)(void*) = NULL;
  void *found[2] = {NULL, NULL}, *context = NULL;
  if (annulus_device_get_info(device, &info) != ANNULUS_OK) return 1;
  annulus_device_driver_entry(device, "cuDevicePrimaryCtxRetain", &found[0]);
  annulus_device_driver_entry(device, "cuCtxSetCurrent", &found[1]);
  memcpy(&retain, &found[0], sizeof retain);
  memcpy(&set_current, &found[1], sizeof set_current);
  return retain(&context, (int)info.ordinal) != 0 || set_current(context) != 0;
}

/* ---- One rank */
#define CALL(call)                                                          \
  do {                                                                      \
    if ((call) != ANNULUS_OK) {                                             \
      printf("rank %d: %s: %s\n", self->rank, #call, annulus_last_error()); \
      return self;                                                          \
    }                                                                       \
  } while (0)

typedef struct rank {
  int rank;
  const ncclUniqueId* id;
  int wrong; /* the number of wrong elements of O */
} rank;

static annulus_status fill(annulus_device* device, int64_t rows, void** memory) {
  const size_t count = (size_t)rows * kHeads * kDim;
  uint16_t* ones = malloc(count * 2);
  annulus_status status = annulus_device_allocate(device, count * 2, memory);
  size_t i = 0;
  for (i = 0; i < count; ++i) ones[i] = 0x3f80; /* 1.0 in bf16 */
  if (status == ANNULUS_OK) {
    status = annulus_device_copy_to_device(device, *memory, ones, count * 2);
  }
  free(ones);
  return status;
}

static void* run_rank(void* argument) {
  rank* self = argument;
  annulus_device_options device_options = ANNULUS_DEVICE_OPTIONS_INIT;
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_ring_rank shard = ANNULUS_RING_RANK_INIT;
  annulus_operands operands = ANNULUS_OPERANDS_INIT;
  annulus_ring_call call = ANNULUS_RING_CALL_INIT;
  annulus_device* device = NULL;
  annulus_communicator* communicator = NULL;
  annulus_ring_rank_plan* plan = NULL;
  ncclComm_t comm = NULL;
  void *q = NULL, *kv = NULL, *o = NULL;
  char name[16];
  uint16_t* answer = NULL;
  size_t count = 0, i = 0;

  snprintf(name, sizeof name, "cuda:%d", self->rank);
  device_options.name = name;
  CALL(annulus_device_open(&device_options, &device));

  /* The engine's communicator. It is blocking and belongs to this thread's device. */
  if (make_current(device) || comm_init_rank(&comm, kRanks, *self->id, self->rank) != 0) {
    printf("rank %d has no communicator\n", self->rank);
    return self;
  }
  options.blocking = 1;
  CALL(annulus_communicator_borrow(device, comm, NULL, &options, &communicator));

  problem.heads = problem.kv_heads = kHeads;
  problem.seq_q = problem.seq_k = kSeq;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal";
  CALL(annulus_ring_rank_plan_create(device, communicator, &problem, NULL, &plan));
  CALL(annulus_ring_rank_plan_get_rank(plan, &shard));

  CALL(fill(device, shard.rows_q, &q));
  CALL(fill(device, shard.rows_k, &kv));
  count = (size_t)shard.rows_q * kHeads * kDim;
  CALL(annulus_device_allocate(device, count * 2, &o));
  CALL(annulus_device_allocate(device, (size_t)shard.workspace_bytes, &call.workspace));
  operands.q = q, operands.k = operands.v = kv, operands.o = o;
  operands.q_strides.head = operands.k_strides.head = kDim; /* [B, S, H, D] */
  operands.q_strides.row = operands.k_strides.row = kHeads * kDim;
  operands.q_strides.batch = operands.k_strides.batch = kSeq * kHeads * kDim;
  operands.o_strides = operands.q_strides, operands.v_strides = operands.k_strides;
  call.operands = &operands;
  CALL(annulus_ring_rank_plan_run(plan, &call, NULL));

  answer = malloc(count * 2);
  CALL(annulus_device_copy_to_host(device, answer, o, count * 2));
  for (i = 0; i < count; ++i) self->wrong += answer[i] != 0x3f80; /* an average of ones is one */
  free(answer);

  /* The communicator returns to the engine, which has owned it all the time. */
  CALL(annulus_ring_rank_plan_destroy(plan));
  CALL(annulus_communicator_destroy(communicator));
  if (comm_destroy(comm) != 0) return self;
  CALL(annulus_device_close(device));
  return NULL;
}

int main(void) {
  pthread_t threads[kRanks];
  rank ranks[kRanks];
  ncclUniqueId id;
  int number = 0, failed = 0;
  if (open_nccl() || get_unique_id(&id) != 0) return 1;
  for (number = 0; number < kRanks; ++number) {
    ranks[number].rank = number, ranks[number].id = &id, ranks[number].wrong = 0;
    if (pthread_create(&threads[number], NULL, run_rank, &ranks[number]) != 0) return 1;
  }
  for (number = 0; number < kRanks; ++number) {
    void* wrong = NULL;
    pthread_join(threads[number], &wrong);
    failed += wrong != NULL || ranks[number].wrong != 0;
    printf("rank %d of %d: %d numbers are wrong\n", number, kRanks, ranks[number].wrong);
  }
  return failed;
}
