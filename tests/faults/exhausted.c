/* Tests threads whose first call of the library happens while all host memory is in use:
 *
 *   fault_exhausted LIBRARY
 *
 * The program is written in C and opens the library itself. So thread-local variables of the
 * library, and of the C++ library that it loads, have no memory from the start of the program. Each
 * thread is new, and all its allocations fail. Its calls must return errors with a text, and a
 * complete text once there is memory again. Memory that the library kept for ended threads must be
 * released. Exit code 1: something was wrong. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annulus/c.h"

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static __thread int exhausted;
#pragma GCC visibility push(default)
void* malloc(size_t bytes) { return exhausted ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return exhausted ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) {
  return exhausted ? NULL : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return exhausted ? NULL : __libc_memalign(alignment, bytes);
}
#pragma GCC visibility pop

static annulus_status (*device_open)(const annulus_device_options*, annulus_device**);
static annulus_status (*device_close)(annulus_device*);
static annulus_status (*scope_begin)(const annulus_work_limit*);
static annulus_status (*scope_end)(int64_t*);
static annulus_status (*normalise)(const char*, const annulus_block_layout*, annulus_text**);
static const char* (*last_error)(void);
static int failures;

static void expect(int condition, const char* what) {
  if (condition) return;
  ++failures;
  printf("WRONG: %s: %s\n", what, last_error());
}

static int has_text(void) { return last_error()[0] != '\0'; }

static void* while_exhausted(void* call) {
  annulus_device* device = NULL;
  annulus_text* pattern = NULL;
  int64_t steps = 0;
  exhausted = 1;
  switch (*(const int*)call) {
    case 0:
      expect(device_close((annulus_device*)1) != ANNULUS_OK && has_text(), "a handle of nothing");
      break;
    case 1:
      expect(device_open(NULL, &device) == ANNULUS_OUT_OF_MEMORY && has_text(), "a device");
      break;
    case 2:
      expect(scope_begin(NULL) == ANNULUS_OUT_OF_MEMORY && has_text(), "a scope of work");
      expect(scope_end(&steps) != ANNULUS_OK && has_text(), "the end of no scope of work");
      break;
    default:
      expect(normalise("causal", NULL, &pattern) == ANNULUS_OUT_OF_MEMORY && has_text(),
             "a pattern");
  }
  exhausted = 0;
  expect(device_close((annulus_device*)1) == ANNULUS_INVALID_ARGUMENT &&
             strstr(last_error(), "device") != NULL,
         "a handle of nothing, with memory");
  return NULL;
}

static void* fail(void* text) {
  annulus_text* pattern = NULL;
  expect(normalise(text, NULL, &pattern) == ANNULUS_PARSE, "a text that is no pattern");
  expect(strlen(last_error()) > 20, "the text of an error is cut");
  return NULL;
}

static void on_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, argument) != 0) exit(2);
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  char text[] = "causal & no_such_leaf(1)";
  struct mallinfo2 before;
  int i;
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    printf("%s\n", argc == 2 ? dlerror() : "give the library");
    return 2;
  }
#define FIND(variable, symbol) *(void**)&variable = dlsym(library, symbol)
  FIND(device_open, "annulus_device_open");
  FIND(device_close, "annulus_device_close");
  FIND(scope_begin, "annulus_work_scope_begin");
  FIND(scope_end, "annulus_work_scope_end");
  FIND(normalise, "annulus_pattern_normalise");
  FIND(last_error, "annulus_last_error");
#undef FIND
  if (scope_end == NULL || normalise == NULL || last_error == NULL) return 2;
  for (i = 0; i < 4; ++i) on_thread(while_exhausted, &i);
  for (i = 0; i < 100; ++i) on_thread(fail, text);
  before = mallinfo2();
  for (i = 0; i < 1000; ++i) on_thread(fail, text);
  expect(mallinfo2().uordblks < before.uordblks + 16000, "1000 ended threads kept memory");
  printf("1104 threads, %d wrong\n", failures);
  return failures != 0;
}
