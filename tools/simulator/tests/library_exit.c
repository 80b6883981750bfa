/* Ends in one of the ways in which programs end, while work is queued: exit | return | thread |
 * fork.
 *
 *   library_exit libcuda.so.1 HOW */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* const kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry fill(.param .u64 out) {\n"
    "  .reg .b64 %a;\n  ld.param.u64 %a, [out];\n  st.global.u32 [%a], 7;\n  ret;\n}\n";

typedef void (*any_function)(void);
static void* library;
static void* context;

static any_function entry(const char* name) {
  void* const found = dlsym(library, name);
  any_function function = NULL;
  memcpy(&function, &found, sizeof function);
  return function;
}

#define CALL(name, types, arguments)                       \
  do {                                                     \
    const int code = ((int(*) types)entry(name))arguments; \
    if (code != 0) {                                       \
      printf("%s returned %d\n", name, code);              \
      exit(2);                                             \
    }                                                      \
  } while (0)

/* Queues a kernel on a stream, and does not wait for it. */
static void* queue(void* unused) {
  void *module = NULL, *kernel = NULL, *stream = NULL;
  unsigned long long memory = 0;
  void* parameters[] = {&memory};
  CALL("cuCtxSetCurrent", (void*), (context));
  CALL("cuModuleLoadData", (void**, const void*), (&module, kPtx));
  CALL("cuModuleGetFunction", (void**, void*, const char*), (&kernel, module, "fill"));
  CALL("cuMemAlloc_v2", (unsigned long long*, size_t), (&memory, 4));
  CALL("cuStreamCreate", (void**, unsigned), (&stream, 1));
  CALL("cuLaunchKernel",
       (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
        void**),
       (kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  return unused;
}

/* Calls the driver while the process ends, like destructors of programs. */
static void late(void) {
  int device = -1;
  const int code = ((int (*)(int*))entry("cuCtxGetDevice"))(&device);
  printf("at exit the driver returns %d\n", code);
}

int main(int argc, char** argv) {
  pthread_t thread;
  int status = 0;
  if (argc != 3) return 2;
  library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) return 2;
  CALL("cuInit", (unsigned), (0));
  CALL("cuDevicePrimaryCtxRetain", (void**, int), (&context, 0));
  atexit(late);
  if (strcmp(argv[2], "thread") == 0) {
    pthread_create(&thread, NULL, queue, NULL);
    pthread_join(thread, NULL);
    return 0;
  }
  queue(NULL);
  if (strcmp(argv[2], "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      /* CUDA_ERROR_NOT_INITIALIZED, from any call */
      _exit(((int (*)(void))entry("cuCtxSynchronize"))() == 3 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    if (status != 0) return 1;
    CALL("cuCtxSynchronize", (void), ());
  }
  if (strcmp(argv[2], "exit") == 0) exit(0);
  return 0;
}
