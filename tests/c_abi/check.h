#ifndef ANNULUS_TESTS_C_ABI_CHECK_H_
#define ANNULUS_TESTS_C_ABI_CHECK_H_

// The checks of these C99 programs: conditions, and calls that must succeed or fail in a certain
// way. Failures are counted and printed, and the program continues.

#include <annulus/c.h>
#include <stddef.h>

void check_condition(const char* file, int line, const char* text, int holds);
// Checks that the code is `expected`. For an error, annulus_last_error() must contain `part`.
void check_status(const char* file, int line, const char* text, annulus_status status,
                  annulus_status expected, const char* part);
int check_failures(void);

#define CHECK(condition) check_condition(__FILE__, __LINE__, #condition, (condition) != 0)
#define CHECK_OK(call) check_status(__FILE__, __LINE__, #call, (call), ANNULUS_OK, "")
#define CHECK_FAILS(call, expected, part) \
  check_status(__FILE__, __LINE__, #call, (call), (expected), (part))

// The groups of tests, one file each.
void test_append(void);
void test_join(void);
void test_late_plans(void);
void test_merge(void);
void test_arguments(void);
void test_attention(void);
void test_batch(void);
void test_callbacks(void);
void test_communicator(void);
void test_driver_entry(void);
void test_float8(void);
void test_handles(void);
void test_inspect(void);
void test_installation(void);
void test_kernels(void);
void test_layout(void);
void test_layout_formats(void);
void test_memory(void);
void test_metrics(void);
void test_oracle(void);
void test_pattern(void);
void test_regroup(void);
void test_rendezvous(void);
void test_ring(void);
void test_selection(void);
void test_structs(void);
void test_threads(void);
void test_tune(void);
void test_tuned_pack(void);

#endif  // ANNULUS_TESTS_C_ABI_CHECK_H_
