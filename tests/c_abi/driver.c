// An engine in C that uses the CUDA driver directly: its stream, its memory pool, its graphs. It
// opens libcuda.so.1 itself, and Annulus finds the same library.
//
//   c_abi_driver PATH-OF-LIBCUDA

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <annulus/c.h>

typedef void (*any_function)(void);

static void* library = NULL;

static any_function find(const char* name) {
  any_function function = NULL;
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "the driver has no %s\n", name);
    exit(2);
  }
  memcpy(&function, &symbol, sizeof function);
  return function;
}

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, annulus_last_error());
  exit(1);
}

// Calls a function of the driver by its name.
#define DRIVER(name, types, arguments) require(((int(*) types)find(name))arguments == 0, name)

enum { kRows = 70, kDim = 64, kBytes = kRows * kDim * 2 };

// cuMemAlloc and a counter take the place of the engine's pool.
static int allocate(void* live, size_t bytes, size_t alignment, void** address) {
  unsigned long long pointer = 0;
  const int code = ((int (*)(unsigned long long*, size_t))find("cuMemAlloc_v2"))(&pointer, bytes);
  if (code != 0 || pointer % alignment != 0) return code + 1;
  ++*(int*)live;
  *address = (void*)(uintptr_t)pointer;
  return 0;
}

static void release(void* live, void* address, size_t bytes) {
  (void)bytes;
  --*(int*)live;
  DRIVER("cuMemFree_v2", (unsigned long long), ((uintptr_t)address));
}

int main(int argc, char** argv) {
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_operands operands = ANNULUS_OPERANDS_INIT;
  const annulus_strides strides = {kRows * kDim, kDim, kDim};
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  void *context = NULL, *stream = NULL, *graph = NULL, *exec = NULL, *tensor = NULL, *o = NULL;
  uint16_t host[kRows * kDim];
  uint16_t answer[kRows * kDim];
  int live = 0;
  int cu_device = 0;
  int run = 0;
  int i = 0;
  library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  DRIVER("cuInit", (unsigned), (0));
  DRIVER("cuDeviceGet", (int*, int), (&cu_device, 0));
  DRIVER("cuDevicePrimaryCtxRetain", (void**, int), (&context, cu_device));
  DRIVER("cuCtxPushCurrent_v2", (void*), (context));
  DRIVER("cuStreamCreate", (void**, unsigned), (&stream, 1));  // CU_STREAM_NON_BLOCKING

  options.name = "cuda:0";
  options.allocate = allocate;
  options.release = release;
  options.allocator_user = &live;
  require(annulus_device_open(&options, &device) == ANNULUS_OK, "open");
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal | strided(2, 0, 8)";
  require(annulus_plan_create(device, &problem, NULL, &plan) == ANNULUS_OK, "plan");
  require(live == 1, "the plan's lists are in a slab of the pool");
  require(annulus_device_allocate(device, kBytes, &tensor) == ANNULUS_OK, "allocate");
  require(annulus_device_allocate(device, kBytes, &o) == ANNULUS_OK, "allocate");
  require(live == 1, "small tensors are in the same slab");
  for (i = 0; i < kRows * kDim; ++i) host[i] = 0x3f80;  // 1.0 in bf16, whose average is 1.0
  require(annulus_device_copy_to_device(device, tensor, host, kBytes) == ANNULUS_OK, "copy");
  operands.q = operands.k = operands.v = tensor;
  operands.o = o;
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = strides;

  // The plan runs once directly, once into a graph, and twice from the graph.
  for (run = 0; run < 4; ++run) {
    memset(answer, 0xff, kBytes);
    DRIVER("cuMemcpyHtoD_v2", (unsigned long long, const void*, size_t),
           ((uintptr_t)o, answer, kBytes));
    if (run == 1) {
      DRIVER("cuStreamBeginCapture_v2", (void*, int), (stream, 0));  // global mode
      require(annulus_plan_run(plan, stream, &operands, NULL) == ANNULUS_OK, "captured run");
      DRIVER("cuStreamEndCapture", (void*, void**), (stream, &graph));
      DRIVER("cuGraphInstantiateWithFlags", (void**, void*, unsigned long long), (&exec, graph, 0));
    } else if (run == 0) {
      require(annulus_plan_run(plan, stream, &operands, NULL) == ANNULUS_OK, "run");
    } else {
      DRIVER("cuGraphLaunch", (void*, void*), (exec, stream));
    }
    DRIVER("cuStreamSynchronize", (void*), (stream));
    DRIVER("cuMemcpyDtoH_v2", (void*, unsigned long long, size_t), (answer, (uintptr_t)o, kBytes));
    require((memcmp(answer, host, kBytes) == 0) == (run != 1), "the answer");
  }
  DRIVER("cuGraphExecDestroy", (void*), (exec));
  DRIVER("cuGraphDestroy", (void*), (graph));
  require(annulus_plan_destroy(plan) == ANNULUS_OK, "destroy");
  require(annulus_device_close(device) == ANNULUS_OK, "close");
  require(live == 0, "the pool has everything back");
  DRIVER("cuStreamDestroy_v2", (void*), (stream));
  DRIVER("cuDevicePrimaryCtxRelease_v2", (int), (cu_device));
  printf("ok\n");
  return 0;
}
