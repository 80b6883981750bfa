// The memory that the library holds on a device, that a plan would need, and that can be released.

#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

void test_memory(void) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_plan_options plan_options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_plan* plan = NULL;
  annulus_memory_needed needed = ANNULUS_MEMORY_NEEDED_INIT;
  annulus_memory_statistics now = ANNULUS_MEMORY_STATISTICS_INIT;
  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  void* memory = NULL;
  size_t bytes = 0;
  options.max_device_bytes = 3 << 20;
  CHECK_OK(annulus_device_open(&options, &device));
  problem.batch = 4;
  problem.seq_q = 2;
  problem.seq_k = 900;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal & strided(2,0,8)";
  plan_options.kv_splits = 3;
  CHECK_OK(annulus_plan_memory_needed(device, &problem, &plan_options, &needed));
  CHECK(needed.device_bytes > 0);
  CHECK(needed.shared_bytes == 0);
  CHECK(needed.workspace_bytes > 0);
  CHECK_OK(annulus_device_memory_statistics(device, &now));
  CHECK(now.held_bytes == 0 && now.slabs == 0);

  plan_options.max_workspace_bytes = needed.workspace_bytes / 4;
  CHECK_OK(annulus_plan_create(device, &problem, &plan_options, &plan));
  CHECK_OK(annulus_plan_workspace_bytes(plan, &bytes));
  CHECK(bytes > 0 && (int64_t)bytes <= needed.workspace_bytes / 4);
  CHECK_OK(annulus_plan_get_info(plan, &info));
  CHECK(info.device_bytes == needed.device_bytes);
  CHECK(strstr(info.decisions, "the 4 batches run 1 at a time") != NULL);
  CHECK_OK(annulus_device_memory_statistics(device, &now));
  CHECK(now.slabs == 1);
  CHECK(now.lists_bytes + now.tables_bytes == now.used_bytes);
  CHECK_OK(annulus_device_allocate(device, 1000, &memory));
  CHECK_OK(annulus_device_memory_statistics(device, &now));
  CHECK(now.caller_bytes == 1000);
  CHECK_OK(annulus_device_release(device, memory));
  CHECK_FAILS(annulus_device_allocate(device, 2 << 20, &memory), ANNULUS_OUT_OF_MEMORY,
              "max_device_bytes, 3145728");
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_trim(device, 0, &bytes));
  CHECK(bytes == 2 << 20);
  CHECK_OK(annulus_device_trim(device, 0, NULL));
  CHECK_OK(annulus_device_memory_statistics(device, &now));
  CHECK(now.held_bytes == 0 && now.peak_held_bytes == 2 << 20);

  plan_options.max_workspace_bytes = 1;
  CHECK_FAILS(annulus_plan_create(device, &problem, &plan_options, &plan), ANNULUS_OUT_OF_MEMORY,
              "max_workspace_bytes is 1");
  plan_options.max_workspace_bytes = -1;
  CHECK_FAILS(annulus_plan_memory_needed(device, &problem, &plan_options, &needed),
              ANNULUS_INVALID_ARGUMENT, "max_workspace_bytes is -1");
  CHECK_FAILS(annulus_plan_memory_needed(device, &problem, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_memory_needed");
  CHECK_FAILS(annulus_device_memory_statistics(device, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_memory_statistics");
  CHECK_OK(annulus_device_close(device));
  CHECK_FAILS(annulus_device_trim(device, 0, NULL), ANNULUS_INVALID_ARGUMENT, "");
  options.max_device_bytes = -1;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "max_device_bytes is -1");
}
