// The caller's log and the caller's memory, and failures of both.

#include <stdlib.h>
#include <string.h>

#include "annulus/c_ring.h"
#include "c_abi/check.h"
#include "c_abi/sample.h"

typedef struct notes {
  int count;
  int max_level;
  size_t bytes;
} notes;

static void note(void* user, int32_t level, const char* text) {
  notes* kept = user;
  ++kept->count;
  kept->bytes += strlen(text);
  if (level > kept->max_level) kept->max_level = level;
}

static void logs(void) {
  annulus_device_options options = sample_options();
  notes kept = {0, -1, 0};
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  sample* made = malloc(sizeof *made);
  options.log = note;
  options.log_user = &kept;
  options.log_level = ANNULUS_LOG_INFO;
  CHECK_OK(annulus_device_open(&options, &device));
  sample_make(made, device);
  CHECK_OK(annulus_plan_create(device, &made->problem, NULL, &plan));
  CHECK(kept.count > 0 && kept.bytes > 10);
  CHECK(kept.max_level == ANNULUS_LOG_INFO);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_close(device));
  free(made);
}

// An engine's pool. It takes memory through another handle of the same device.
typedef struct pool {
  annulus_device* device;
  int asked;
  int live;
  size_t live_bytes;
  int refuse;   // requests from this number on fail, counted from 0
  int nothing;  // these requests return success and null instead
  int crooked;  // the request with this number returns a misaligned address
} pool;

static int pool_allocate(void* user, size_t bytes, size_t alignment, void** address) {
  pool* from = user;
  const int number = from->asked++;
  CHECK(bytes > 0 && alignment == 256);
  if (from->refuse >= 0 && number >= from->refuse) return 42;
  if (from->nothing >= 0 && number >= from->nothing) {
    *address = NULL;
    return 0;
  }
  if (annulus_device_allocate(from->device, bytes, address) != ANNULUS_OK) return 1;
  CHECK((uintptr_t)*address % alignment == 0);
  ++from->live;
  from->live_bytes += bytes;
  if (number == from->crooked) *address = (char*)*address + 8;
  return 0;
}

static void pool_release(void* user, void* address, size_t bytes) {
  pool* to = user;
  --to->live;
  to->live_bytes -= bytes;
  address = (void*)((uintptr_t)address & ~(uintptr_t)255);
  CHECK_OK(annulus_device_release(to->device, address));
}

// Makes all calls that take device memory, up to the first failure. Returns the code of the
// failure.
static annulus_status flow(pool* from) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  annulus_status status = ANNULUS_OK;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  void* memory = NULL;
  int asked = 0;
  options.allocate = pool_allocate;
  options.release = pool_release;
  options.allocator_user = from;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal | strided(2, 0, 8)";  // its tiles are listed in device memory
  CHECK_OK(annulus_device_open(&options, &device));
  status = annulus_device_allocate(device, kRows * kDim * 2, &memory);
  if (status == ANNULUS_OK) status = annulus_plan_create(device, &problem, NULL, &plan);
  if (status == ANNULUS_OK) {
    annulus_operands operands = ANNULUS_OPERANDS_INIT;
    const annulus_strides strides = {0, 0, kDim};
    void* o = NULL;
    status = annulus_device_allocate(device, kRows * kDim * 2, &o);
    operands.q = operands.k = operands.v = memory;
    operands.o = o;
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = strides;
    if (status == ANNULUS_OK) {
      void* zeros = calloc(kRows * kDim, 2);
      CHECK_OK(annulus_device_copy_to_device(device, memory, zeros, kRows * kDim * 2));
      free(zeros);
      asked = from->asked;
      CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
      CHECK(from->asked == asked);
      CHECK_OK(annulus_device_synchronize(device));
    }
    CHECK_OK(annulus_plan_destroy(plan));
  }
  CHECK_OK(annulus_device_close(device));
  return status;
}

// A ring of three ranks on one device, up to the first failure. Returns its code.
static annulus_status ring_flow(pool* from) {
  annulus_device_options options = sample_options();
  annulus_device* ranks[3] = {NULL, NULL, NULL};
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_ring* ring = NULL;
  annulus_status status = ANNULUS_OK;
  options.allocate = pool_allocate;
  options.release = pool_release;
  options.allocator_user = from;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal | strided(2, 0, 8)";  // its tiles are listed in device memory
  CHECK_OK(annulus_device_open(&options, &ranks[0]));
  ranks[1] = ranks[2] = ranks[0];
  status = annulus_ring_create(ranks, 3, &problem, NULL, &ring);
  if (status == ANNULUS_OK) CHECK_OK(annulus_ring_destroy(ring));
  CHECK_OK(annulus_device_close(ranks[0]));
  return status;
}

static void allocators(annulus_status (*flow)(pool*), int least_requests) {
  annulus_device* device = sample_open();
  annulus_device_options half = sample_options();
  annulus_device* none = NULL;
  pool from = {NULL, 0, 0, 0, -1, -1, -1};
  int requests = 0;
  int n = 0;
  from.device = device;
  CHECK(flow(&from) == ANNULUS_OK);
  requests = from.asked;
  CHECK(requests >= least_requests);
  CHECK(from.live == 0 && from.live_bytes == 0);
  for (n = 0; n < requests; ++n) {
    from.asked = 0;
    from.refuse = n;
    CHECK_FAILS(flow(&from), ANNULUS_OUT_OF_MEMORY, "it returned 42");
    CHECK(from.live == 0 && from.live_bytes == 0);
    from.refuse = -1;
    from.asked = 0;
    from.nothing = n;
    CHECK_FAILS(flow(&from), ANNULUS_OUT_OF_MEMORY, "the caller's allocator returned null for");
    CHECK(from.live == 0 && from.live_bytes == 0);
    from.nothing = -1;
    from.asked = 0;
    from.crooked = n;
    CHECK_FAILS(flow(&from), ANNULUS_INVALID_ARGUMENT, "is not a multiple of the alignment, 256");
    CHECK(from.live == 0 && from.live_bytes == 0);
    from.crooked = -1;
  }
  half.allocate = pool_allocate;
  CHECK_FAILS(annulus_device_open(&half, &none), ANNULUS_INVALID_ARGUMENT, "has no release");
  half.allocate = NULL;
  half.release = pool_release;
  CHECK_FAILS(annulus_device_open(&half, &none), ANNULUS_INVALID_ARGUMENT, "has no allocate");
  CHECK(none == NULL);
  CHECK_OK(annulus_device_close(device));
}

void test_callbacks(void) {
  logs();
  allocators(flow, 1);       // one slab for two tensors and the lists of the plan
  allocators(ring_flow, 1);  // one slab for the lists of all launches
}
