/* Sliding-window attention from C, from opening a device to reading the answer. Every function of
 * annulus/c.h returns a status, and annulus_last_error() returns the text of an error. */

#include <annulus/c.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 300, kHeads = 2, kDim = 64, kElements = kRows * kHeads * kDim };

static void check(annulus_status status, const char* what) {
  if (status == ANNULUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, annulus_status_text(status), annulus_last_error());
  exit(1);
}

/* A tensor [kRows, kHeads, kDim] of bf16 on the device; row i holds the number bits(i). */
static void* upload(annulus_device* device, uint16_t (*bits)(int row)) {
  uint16_t* host = malloc(kElements * sizeof *host);
  void* memory = NULL;
  int i = 0;
  for (i = 0; i < kElements; ++i) host[i] = bits(i / (kHeads * kDim));
  check(annulus_device_allocate(device, kElements * sizeof *host, &memory), "allocate");
  check(annulus_device_copy_to_device(device, memory, host, kElements * sizeof *host), "copy");
  free(host);
  return memory;
}

/* bf16 is the upper half of a float: 0x3f80 is 1, 0x4040 is 3. */
static uint16_t one(int row) { return row >= 0 ? 0x3f80 : 0; }
static uint16_t odd_even(int row) { return row % 2 == 0 ? 0x3f80 : 0x4040; }

int main(void) {
  annulus_device* device = NULL; /* the first GPU, else a simulated one */
  check(annulus_device_open(NULL, &device), "open");

  /* Plan: chooses a kernel, compiles it or finds it in the cache. Batch 1 and bf16 are defaults. */
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.heads = problem.kv_heads = kHeads;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal & window(63,0)"; /* a query sees itself and the 63 keys before */
  annulus_plan* plan = NULL;
  check(annulus_plan_create(device, &problem, NULL, &plan), "plan");

  /* Equal scores: each row of O is the average of the rows of V that it sees. */
  annulus_operands operands = ANNULUS_OPERANDS_INIT;
  const annulus_strides strides = {kElements, kDim, kHeads * kDim}; /* batch, head and row */
  operands.q = operands.k = upload(device, one);
  operands.v = upload(device, odd_even);
  operands.o = upload(device, one);
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = strides;

  size_t bytes = 0;
  void* workspace = NULL;
  check(annulus_plan_workspace_bytes(plan, &bytes), "workspace");
  check(annulus_device_allocate(device, bytes, &workspace), "allocate");
  check(annulus_plan_run(plan, NULL, &operands, workspace), "run"); /* on the default stream */

  uint16_t o[kHeads * kDim]; /* the last row: an average of 32 ones and 32 threes */
  const char* last_row = (const char*)operands.o + (kElements - kHeads * kDim) * sizeof *o;
  check(annulus_device_copy_to_host(device, o, last_row, sizeof o), "copy");

  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  check(annulus_plan_get_info(plan, &info), "info");
  printf("%s, %.0f %% of the blocks: %#06x\n", info.config, 100 * info.block_density, o[0]);
  check(annulus_plan_destroy(plan), "destroy");
  check(annulus_device_close(device), "close"); /* also frees the memory of the device */
  return o[0] == 0x4000 ? 0 : 1;                /* 2 in bf16 */
}
