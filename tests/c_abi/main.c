// The C interface as a C99 program uses it. This program includes only its headers and links only
// libannulus.so.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"

static int conditions = 0;
static int failures = 0;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;  // needed because ranks are threads

static void count(int holds) {
  pthread_mutex_lock(&counting);
  ++conditions;
  if (!holds) ++failures;
  pthread_mutex_unlock(&counting);
}

void check_condition(const char* file, int line, const char* text, int holds) {
  count(holds);
  if (holds) return;
  fprintf(stderr, "%s:%d: %s does not hold; the last error: %s\n", file, line, text,
          annulus_last_error());
}

void check_status(const char* file, int line, const char* text, annulus_status status,
                  annulus_status expected, const char* part) {
  const int found = status == ANNULUS_OK || strstr(annulus_last_error(), part) != NULL;
  count(status == expected && found);
  if (status == expected && found) return;
  fprintf(stderr, "%s:%d: %s\n  returned '%s', wanted '%s' with '%s'; the last error: %s\n", file,
          line, text, annulus_status_text(status), annulus_status_text(expected), part,
          annulus_last_error());
}

int check_failures(void) { return failures; }

static void test_versions(void) {
  CHECK(strcmp(annulus_last_error(), "") == 0);
  CHECK(annulus_version() == ANNULUS_VERSION);
  CHECK(strcmp(annulus_version_text(), ANNULUS_VERSION_TEXT) == 0);
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", ANNULUS_VERSION_MAJOR, ANNULUS_VERSION_MINOR,
           ANNULUS_VERSION_PATCH);
  CHECK(strcmp(text, ANNULUS_VERSION_TEXT) == 0);
  CHECK(strcmp(annulus_status_text(ANNULUS_OK), "ok") == 0);
  CHECK(strcmp(annulus_status_text(ANNULUS_PARSE), "parse error") == 0);
  CHECK(strcmp(annulus_status_text(77), "unknown error") == 0);
  CHECK(strcmp(annulus_status_text(-1), "unknown error") == 0);
}

// Without these variables the tests would fill the user's folders.
static int is_set(const char* name) {
  const char* value = getenv(name);
  if (value != NULL && value[0] == '/') return 1;
  fprintf(stderr, "%s is %s%s%s; set it to the absolute path of a folder that tests may fill\n",
          name, value == NULL ? "not set" : "'", value == NULL ? "" : value,
          value == NULL ? "" : "'");
  return 0;
}

int main(void) {
  const int cache = is_set("ANNULUS_CACHE_DIR");
  const int tuned = is_set("ANNULUS_TUNED");
  if (!cache || !tuned) return 2;
  test_versions();
  test_structs();
  test_handles();
  test_arguments();
  test_attention();
  test_float8();
  test_callbacks();
  test_driver_entry();
  test_threads();
  test_ring();
  test_rendezvous();
  test_communicator();
  test_regroup();
  test_append();
  test_merge();
  test_join();
  test_late_plans();
  test_batch();
  test_pattern();
  test_layout();
  test_layout_formats();
  test_selection();
  test_memory();
  test_metrics();
  test_oracle();
  test_inspect();
  test_installation();
  test_kernels();
  test_tune();
  test_tuned_pack();
  printf("%d conditions, %d failed\n", conditions, failures);
  return failures == 0 ? 0 : 1;
}
