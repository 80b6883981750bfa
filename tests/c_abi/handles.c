// Handles that are null, stale, invented or of another kind, and missing outputs.

#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

static void refused_device(annulus_device* device, const char* part) {
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_plan* plan = NULL;
  void* memory = NULL;
  char byte = 0;
  CHECK_FAILS(annulus_device_get_info(device, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_device_allocate(device, 8, &memory), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_device_release(device, &byte), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_device_copy_to_device(device, &byte, &byte, 1), ANNULUS_INVALID_ARGUMENT,
              part);
  CHECK_FAILS(annulus_device_copy_to_host(device, &byte, &byte, 1), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_device_synchronize(device), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_plan_create(device, &problem, NULL, &plan), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_device_close(device), ANNULUS_INVALID_ARGUMENT, part);
  CHECK(plan == NULL && memory == NULL);
}

static void refused_plan(annulus_plan* plan, const sample* made, const char* part) {
  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  size_t bytes = 0;
  CHECK_FAILS(annulus_plan_get_info(plan, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_plan_workspace_bytes(plan, &bytes), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_plan_run(plan, NULL, &made->operands, NULL), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_plan_destroy(plan), ANNULUS_INVALID_ARGUMENT, part);
}

static void missing_outputs(const sample* made, annulus_plan* plan) {
  CHECK_FAILS(annulus_device_open(NULL, NULL), ANNULUS_INVALID_ARGUMENT, "device");
  CHECK_FAILS(annulus_device_get_info(made->device, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_device_info is null");
  CHECK_FAILS(annulus_device_allocate(made->device, 8, NULL), ANNULUS_INVALID_ARGUMENT, "memory");
  CHECK_FAILS(annulus_plan_create(made->device, &made->problem, NULL, NULL),
              ANNULUS_INVALID_ARGUMENT, "plan");
  CHECK_FAILS(annulus_plan_create(made->device, NULL, NULL, &plan), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem is null");
  CHECK_FAILS(annulus_plan_get_info(plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_plan_info is null");
  CHECK_FAILS(annulus_plan_workspace_bytes(plan, NULL), ANNULUS_INVALID_ARGUMENT, "bytes");
  CHECK_FAILS(annulus_plan_run(plan, NULL, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_operands is null");
}

static void device_memory(annulus_device* device) {
  void* memory = NULL;
  void* inside = NULL;
  int number = 7;
  int back = 0;
  CHECK_OK(annulus_device_allocate(device, 0, &memory));
  CHECK(memory == NULL);
  CHECK_OK(annulus_device_release(device, NULL));
  CHECK_OK(annulus_device_allocate(device, 64, &memory));
  inside = (char*)memory + 16;
  CHECK_OK(annulus_device_copy_to_device(device, inside, &number, sizeof number));
  CHECK_OK(annulus_device_copy_to_host(device, &back, inside, sizeof back));
  CHECK(back == 7);
  CHECK_FAILS(annulus_device_copy_to_device(device, NULL, &number, 4), ANNULUS_INVALID_ARGUMENT,
              "4 bytes cannot be copied to a null pointer");
  CHECK_FAILS(annulus_device_copy_to_host(device, &back, NULL, 4), ANNULUS_INVALID_ARGUMENT,
              "from a null pointer");
  CHECK_OK(annulus_device_copy_to_host(device, NULL, NULL, 0));
  CHECK_FAILS(annulus_device_release(device, inside), ANNULUS_INVALID_ARGUMENT,
              "is not memory of this device");
  CHECK_OK(annulus_device_release(device, memory));
  CHECK_FAILS(annulus_device_release(device, memory), ANNULUS_INVALID_ARGUMENT,
              "was it released already?");
  CHECK_FAILS(annulus_device_allocate(device, (size_t)1 << 60, &memory), ANNULUS_OUT_OF_MEMORY,
              "bytes are free");
}

// More plans are open at once than one block of the handle table holds.
static void many_plans(const sample* made) {
  enum { kMany = 200 };
  annulus_plan* plans[kMany];
  int i = 0;
  int j = 0;
  int same = 0;
  for (i = 0; i < kMany; ++i) {
    CHECK_OK(annulus_plan_create(made->device, &made->problem, NULL, &plans[i]));
    for (j = 0; j < i; ++j) same += plans[j] == plans[i];
  }
  CHECK(same == 0);
  CHECK_OK(annulus_plan_run(plans[kMany - 1], NULL, &made->operands, NULL));
  CHECK(sample_error(made, sample_all, NULL) < 1e-2);
  for (i = 0; i < kMany; ++i) CHECK_OK(annulus_plan_destroy(plans[i]));
  for (i = 0; i < kMany; ++i) {
    CHECK_FAILS(annulus_plan_destroy(plans[i]), ANNULUS_INVALID_ARGUMENT, "given back already");
  }
}

void test_handles(void) {
  annulus_device* device = NULL;
  annulus_device* other = NULL;
  annulus_plan* plan = NULL;
  annulus_plan* next = NULL;
  sample* made = malloc(sizeof *made);
  annulus_device_options options = sample_options();
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  annulus_plan_info plan_info = ANNULUS_PLAN_INFO_INIT;
  size_t bytes = 77;
  char* text = malloc(64);
  options.tuned_path = "/no/such folder";
  CHECK_OK(annulus_device_open(&options, &device));
  sample_make(made, device);
  CHECK_OK(annulus_plan_create(device, &made->problem, NULL, &plan));

  CHECK_OK(annulus_device_get_info(device, &info));
  CHECK(strlen(info.name) > 4 && strlen(info.description) > 0);
  CHECK(strncmp(info.architecture, "sm_", 3) == 0);
  CHECK(strcmp(info.tuned_path, "/no/such folder") == 0);
  CHECK(info.memory_bytes > 0 && info.shared_bytes_per_block > 16384);
  CHECK_OK(annulus_plan_get_info(plan, &plan_info));
  CHECK(strlen(plan_info.kernel) > 0 && strlen(plan_info.config) > 4);
  CHECK(strstr(plan_info.decisions, "\n") != NULL && strstr(plan_info.rejected, "\n") != NULL);
  CHECK(strstr(plan_info.specialised_source, "#include") != NULL);
  CHECK(strcmp(plan_info.tuned, "") == 0);
  CHECK(plan_info.launches == 1 && plan_info.ctas >= kHeads && plan_info.threads >= 32);
  CHECK(plan_info.block_density > 0.99);
  CHECK(plan_info.device_bytes == 0);  // a row's tiles are computed from its number
  CHECK_OK(annulus_plan_workspace_bytes(plan, &bytes));
  CHECK(bytes != 77);

  missing_outputs(made, plan);
  device_memory(device);
  many_plans(made);

  refused_device(NULL, "the device is null");
  refused_plan(NULL, made, "the plan is null");
  refused_device((annulus_device*)plan, "is not a handle of type device");
  refused_plan((annulus_plan*)device, made, "is not a handle of type plan");
  // Addresses with memory and without, and random numbers.
  refused_device((annulus_device*)text, "is not a handle of type device");
  refused_plan((annulus_plan*)(uintptr_t)0x10, made, "is not a handle of type plan");
  refused_plan((annulus_plan*)(uintptr_t)-1, made, "is not a handle of type plan");
  refused_plan((annulus_plan*)((uintptr_t)plan + ((uintptr_t)1 << 32)), made, "given back already");
  refused_plan((annulus_plan*)((uintptr_t)plan | 0xffffff00u), made,
               "is not a handle of type plan");

  // A plan outlives its device's handle, and becomes invalid when its own handle is destroyed.
  CHECK_OK(annulus_device_open(&options, &other));
  CHECK_OK(annulus_plan_create(other, &made->problem, NULL, &next));
  CHECK_OK(annulus_device_close(other));
  refused_device(other, "the device was given back already");
  sample_clear(made);
  CHECK_OK(annulus_plan_run(next, NULL, &made->operands, NULL));
  CHECK(sample_error(made, sample_all, NULL) < 1e-2);
  CHECK_OK(annulus_plan_destroy(next));
  refused_plan(next, made, "the plan was given back already");
  // The place in the table is reused, but the old handle stays invalid.
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_plan_create(device, &made->problem, NULL, &plan));
  refused_plan(next, made, "the plan was given back already");
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_close(device));
  refused_device(device, "the device was given back already");
  free(text);
  free(made);
}
