/* The simulated GPU in a program without a GPU: loads PTX, runs a kernel and prints the counters.
 * It links annulus::simulator and nothing else. */
#include <annulus/simulator.h>
#include <stdio.h>
#include <string.h>

static const char* const kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry number(.param .u64 out) {\n"
    "  .reg .b64 %address, %offset;\n  .reg .b32 %thread;\n"
    "  ld.param.u64 %address, [out];\n  mov.u32 %thread, %tid.x;\n"
    "  mul.wide.u32 %offset, %thread, 4;\n  add.u64 %address, %address, %offset;\n"
    "  st.global.u32 [%address], %thread;\n  ret;\n}\n";

typedef void (*any_function)(void);

static any_function entry(const char* name) {
  void* found = NULL;
  any_function function = NULL;
  annulusSimulatorEntry(name, &found);
  memcpy(&function, &found, sizeof function);
  return function;
}

/* Calls a function of the driver by its name in cuda.h. The program ends if the function fails. */
#define CALL(name, types, arguments)                              \
  do {                                                            \
    const int code = ((int(*) types)entry(name))arguments;        \
    if (code != 0) return printf("%s returned %d\n", name, code); \
  } while (0)

int main(void) {
  annulus_simulator_options options = ANNULUS_SIMULATOR_OPTIONS_INIT;
  annulus_simulator_counters counters;
  int device = 0;
  void *context = NULL, *module = NULL, *kernel = NULL;
  unsigned long long memory = 0;
  unsigned numbers[32] = {0};
  void* parameters[] = {&memory};

  CALL("cuInit", (unsigned), (0));
  CALL("annulusSimulatorFindDevice", (const char*, int, int*), ("sm_80", 0, &device));
  options.seed = 7;
  CALL("annulusSimulatorSetOptions", (int, const void*), (device, &options));
  CALL("cuDevicePrimaryCtxRetain", (void**, int), (&context, device));
  CALL("cuCtxSetCurrent", (void*), (context));
  CALL("cuModuleLoadData", (void**, const void*), (&module, kPtx));
  CALL("cuModuleGetFunction", (void**, void*, const char*), (&kernel, module, "number"));
  CALL("cuMemAlloc_v2", (unsigned long long*, size_t), (&memory, sizeof numbers));
  CALL("cuLaunchKernel",
       (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
        void**),
       (kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
  CALL("cuMemcpyDtoH_v2", (void*, unsigned long long, size_t), (numbers, memory, sizeof numbers));
  counters.struct_size = sizeof counters;
  CALL("annulusSimulatorCounters", (int, void*, int), (device, &counters, 0));
  printf("thread %u was the last; %llu instructions of warps, %llu sectors written\n", numbers[31],
         (unsigned long long)counters.warp_instructions,
         (unsigned long long)counters.global_sectors_written);
  return numbers[31] == 31 ? 0 : 1;
}
