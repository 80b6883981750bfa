// A profiler for NVTX version 3, for the tests. It takes ranges of domains and writes them down in
// the order in which they end. The ids are defined by NVTX's header nvtxTypes.h.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*function)(void);
typedef struct callbacks {
  size_t bytes;
  int (*module_functions)(unsigned module, function*** table, unsigned* count);
} callbacks;
typedef struct event_attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
} event_attributes;

enum { kMost = 16, kText = 128 };
static __thread char open_ranges[kMost][kText];
static __thread int depth = 0;
static __thread char log_text[1 << 16];
static char domain_name[32];

static void* create_domain(const char* name) {
  snprintf(domain_name, sizeof domain_name, "%s", name);
  return domain_name;
}

static int push(void* domain, const event_attributes* event) {
  const int known = domain == domain_name && event->version == 3 &&
                    event->size == sizeof(event_attributes) && event->message_type == 1;
  if (depth < kMost) snprintf(open_ranges[depth], kText, "%s", known ? event->message : "?");
  return depth++;
}

static int pop(void* domain) {
  if (depth == 0 || domain != domain_name) return -1;
  --depth;
  if (depth < kMost && strlen(log_text) + kText + 8 < sizeof log_text) {
    snprintf(log_text + strlen(log_text), kText + 8, "%d %s\n", depth, open_ranges[depth]);
  }
  return depth;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t));
int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  const callbacks* table = export_table(1);
  function** slots = NULL;
  unsigned count = 0;
  if (table == NULL || table->bytes < sizeof *table) return 0;
  // Real profilers too request every module and write into its last slot, which must exist.
  for (unsigned module = 1; module <= 6; ++module) {
    if (!table->module_functions(module, &slots, &count) || count == 0) return 0;
    if (slots[0] != NULL || slots[count] != NULL || slots[count - 1] == NULL) return 0;
  }
  if (table->module_functions(7, &slots, &count)) return 0;
  if (!table->module_functions(5, &slots, &count) || count <= 12) return 0;
  *slots[4] = (function)push;
  *slots[5] = (function)pop;
  *slots[12] = (function)create_domain;
  return 1;
}

// A log of the ranges that the calling thread has ended: a line "DEPTH TEXT" for each range.
EXPORTED const char* profiler_log(void);
const char* profiler_log(void) { return log_text; }
