// Layouts made on the host and on a device, used by a problem, and made from each other.

#include <annulus/c.h>
#include <annulus/c_layout.h>
#include <stdlib.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

static annulus_layout_sizes sizes_of(int64_t block, int64_t length, int64_t heads) {
  annulus_layout_sizes sizes = ANNULUS_LAYOUT_SIZES_INIT;
  sizes.block_rows = sizes.block_columns = block;
  sizes.seq_q = sizes.seq_k = length;
  sizes.heads = heads;
  return sizes;
}

static annulus_layout* make(const char* pattern, int64_t heads) {
  const annulus_layout_sizes sizes = sizes_of(32, 256, heads);
  annulus_layout* layout = NULL;
  CHECK_OK(annulus_layout_make(pattern, NULL, &sizes, NULL, &layout));
  return layout;
}

static annulus_block_layout arrays_of(annulus_layout* layout) {
  annulus_block_layout arrays = ANNULUS_BLOCK_LAYOUT_INIT;
  CHECK_OK(annulus_layout_get(layout, &arrays));
  return arrays;
}

// The number of blocks that only one of the two keeps. Destroys `other`.
static int64_t differing(annulus_layout* layout, annulus_layout* other) {
  annulus_layout_difference found = ANNULUS_LAYOUT_DIFFERENCE_INIT;
  CHECK_OK(annulus_layout_compare(layout, other, 0, &found, NULL));
  CHECK(found.same_sizes == 1);
  CHECK_OK(annulus_layout_destroy(other));
  return found.only_first + found.only_second;
}

// A scope of work. Its calls are counted together, including the oracle's, and it belongs to its
// thread.
static void in_a_scope(void) {
  annulus_work_limit limit = ANNULUS_WORK_LIMIT_INIT;
  const annulus_layout_sizes sizes = sizes_of(64, 4096, 1);
  annulus_layout *layout = NULL, *fine = NULL;
  int64_t steps = 0;
  CHECK_OK(annulus_layout_make("causal", NULL, &sizes, NULL, &layout));
  CHECK_FAILS(annulus_work_scope_end(&steps), ANNULUS_INVALID_ARGUMENT, "is not in a scope");
  limit.max_work = 1000000;
  CHECK_OK(annulus_work_scope_begin(&limit));
  CHECK_FAILS(annulus_work_scope_begin(&limit), ANNULUS_INVALID_ARGUMENT, "already");
  CHECK_FAILS(annulus_layout_reblock(layout, 1, 1, &fine), ANNULUS_LIMIT, "1000000");
  CHECK_OK(annulus_work_scope_end(&steps));
  CHECK(steps > 1000000);
  const volatile int32_t set = 1;
  limit.cancel = &set;
  CHECK_FAILS(annulus_work_scope_begin(&limit), ANNULUS_CANCELLED, "cancelled");
  limit.cancel = NULL;
  limit.max_work = -2;
  CHECK_FAILS(annulus_work_scope_begin(&limit), ANNULUS_INVALID_ARGUMENT, "-2");
  CHECK_OK(annulus_work_scope_begin(NULL));
  CHECK_OK(annulus_layout_reblock(layout, 32, 32, &fine));
  CHECK_OK(annulus_work_scope_end(NULL));
  CHECK_OK(annulus_layout_destroy(fine));
  CHECK_OK(annulus_layout_destroy(layout));
}

// The options max_work and cancel, in all calls that have them.
static void limited(const sample* made) {
  const annulus_layout_sizes sizes = sizes_of(16, 1048576, 1);
  const char* const pattern = "causal & strided(8, 4, 64)";
  const volatile int32_t set = 1;
  annulus_layout_options options = ANNULUS_LAYOUT_OPTIONS_INIT;
  annulus_plan_options plan_options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_work_limit limit = ANNULUS_WORK_LIMIT_INIT;
  annulus_layout_statistics counts = ANNULUS_LAYOUT_STATISTICS_INIT;
  annulus_problem problem = made->problem;
  annulus_layout* layout = NULL;
  annulus_plan* plan = NULL;
  double density = 0;
  CHECK(options.max_work == 0 && plan_options.max_work == 0 && limit.max_work == 0);
  options.max_work = plan_options.max_work = limit.max_work = 100000;
  problem.seq_q = problem.seq_k = 4194304;
  problem.pattern = pattern;
  CHECK_FAILS(annulus_layout_make(pattern, NULL, &sizes, &options, &layout), ANNULUS_LIMIT,
              "100000");
  CHECK_FAILS(annulus_pattern_statistics(pattern, NULL, &sizes, &options, &counts), ANNULUS_LIMIT,
              "100000");
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &plan_options, &plan), ANNULUS_LIMIT,
              "100000");
  CHECK_FAILS(annulus_plan_prefetch(made->device, &problem, &plan_options), ANNULUS_LIMIT,
              "100000");
  CHECK_FAILS(annulus_problem_density(&problem, &limit, &density), ANNULUS_LIMIT, "100000");
  options.max_work = plan_options.max_work = limit.max_work = -1;
  options.cancel = plan_options.cancel = limit.cancel = &set;
  CHECK_FAILS(annulus_layout_make(pattern, NULL, &sizes, &options, &layout), ANNULUS_CANCELLED,
              "cancelled");
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &plan_options, &plan), ANNULUS_CANCELLED,
              "cancelled");
  CHECK_FAILS(annulus_problem_density(&problem, &limit, &density), ANNULUS_CANCELLED, "cancelled");
  plan_options.max_work = -2;
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &plan_options, &plan),
              ANNULUS_INVALID_ARGUMENT, "a limit of -2 steps");
  CHECK(layout == NULL && plan == NULL);
}

static void made_and_lent(const sample* made) {
  const annulus_layout_sizes sizes = sizes_of(8, kRows, kHeads);
  annulus_layout_options options = ANNULUS_LAYOUT_OPTIONS_INIT;
  annulus_layout* layout = NULL;
  annulus_layout* again = NULL;
  annulus_block_layout arrays;
  annulus_problem problem = made->problem;
  annulus_plan* plan = NULL;
  CHECK_OK(annulus_layout_make("causal", NULL, &sizes, NULL, &layout));
  arrays = arrays_of(layout);
  CHECK(arrays.heads == 1 && arrays.indptr_count == 6 && arrays.indices_count == 15);
  CHECK(arrays.partial_count == 15 && arrays.partial[0] == 1 && arrays.partial[1] == 0);
  options.device = made->device;
  CHECK_OK(annulus_layout_make("causal", NULL, &sizes, &options, &again));
  CHECK(differing(layout, again) == 0);
  // A layout from arrays, and a text with blocks() for the same arrays.
  CHECK_OK(annulus_layout_create(&arrays, &again));
  CHECK(differing(layout, again) == 0);
  CHECK_OK(annulus_layout_make("blocks() & causal", &arrays, &sizes, NULL, &again));
  CHECK(differing(layout, again) == 0);
  problem.layout = &arrays;
  problem.pattern = "causal & blocks()";
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  sample_clear(made);
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK(sample_error(made, sample_causal, NULL) < 1e-2);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_layout_destroy(layout));
}

static void algebra(void) {
  annulus_layout* lower = make("causal", 1);
  annulus_layout* near = make("window(40,40)", 1);
  const annulus_segment half = {0, 128};
  annulus_layout* a = NULL;
  annulus_layout* b = NULL;
  CHECK_OK(annulus_layout_intersect(lower, near, &a));
  CHECK_OK(annulus_layout_subtract(lower, near, &b));
  CHECK(arrays_of(a).indices_count + arrays_of(b).indices_count == 36);
  {
    annulus_layout* both = NULL;
    CHECK_OK(annulus_layout_unite(a, b, &both));
    CHECK(differing(lower, both) == 0);
  }
  CHECK_OK(annulus_layout_destroy(a));
  CHECK_OK(annulus_layout_destroy(b));
  CHECK_OK(annulus_layout_transpose(lower, &a));
  CHECK(arrays_of(a).indices[7] == 7 && arrays_of(a).indptr[1] == 8);
  CHECK_OK(annulus_layout_transpose(a, &b));
  CHECK_OK(annulus_layout_destroy(a));
  CHECK(differing(lower, b) == 0);
  CHECK_OK(annulus_layout_reblock(lower, 64, 128, &a));
  CHECK(arrays_of(a).block_columns == 128 && arrays_of(a).indices_count == 6);
  CHECK_OK(annulus_layout_destroy(a));
  CHECK_OK(annulus_layout_slice(lower, &half, 1, &half, 1, &a));
  CHECK(arrays_of(a).seq_q == 128 && arrays_of(a).indices_count == 10);
  CHECK_OK(annulus_layout_destroy(a));
  CHECK_OK(annulus_layout_with_density(lower, 0.25, NULL, &a));
  CHECK(arrays_of(a).indices_count == 16);
  CHECK_OK(annulus_layout_destroy(a));
  CHECK_OK(annulus_layout_with_density(near, 0.2, lower, &a));
  CHECK(arrays_of(a).indices_count == 13);
  CHECK_OK(annulus_layout_destroy(a));
  CHECK_OK(annulus_layout_destroy(lower));
  CHECK_OK(annulus_layout_destroy(near));
}

static void heads(void) {
  annulus_layout* two = make("heads(causal, dense)", 4);
  annulus_layout* parted = NULL;
  annulus_layout* shared = NULL;
  annulus_layout* one = NULL;
  CHECK(arrays_of(two).heads == 2 && arrays_of(two).head_map_count == 4);
  CHECK_OK(annulus_layout_part_heads(two, &parted));
  CHECK(arrays_of(parted).heads == 4 && arrays_of(parted).head_map == NULL);
  CHECK_OK(annulus_layout_share_heads(parted, &shared));
  CHECK(arrays_of(shared).heads == 2);
  CHECK_OK(annulus_layout_head(two, 3, &one));
  CHECK(arrays_of(one).indices_count == 64);
  CHECK_FAILS(annulus_layout_head(two, 4, &one), ANNULUS_INVALID_ARGUMENT, "4");
  CHECK(differing(two, parted) == 0);
  CHECK(differing(two, shared) == 0);
  CHECK_OK(annulus_layout_destroy(one));
  CHECK_OK(annulus_layout_destroy(two));
}

static int text_has(annulus_text* text, const char* part) {
  const char* characters = NULL;
  int found = 0;
  CHECK_OK(annulus_text_get(text, &characters, NULL));
  found = strstr(characters, part) != NULL;
  CHECK_OK(annulus_text_destroy(text));
  return found;
}

static void told(void) {
  const annulus_layout_sizes sizes = sizes_of(32, 256, 1);
  annulus_layout* lower = make("causal", 1);
  annulus_layout* near = make("causal & window(40,0)", 1);
  annulus_layout* short_one = NULL;
  annulus_layout_statistics counts = ANNULUS_LAYOUT_STATISTICS_INIT;
  annulus_layout_difference found = ANNULUS_LAYOUT_DIFFERENCE_INIT;
  annulus_picture_options options = ANNULUS_PICTURE_OPTIONS_INIT;
  annulus_text* text = NULL;
  double shares[8];
  CHECK_OK(annulus_layout_get_statistics(lower, &counts));
  CHECK(counts.rows == 8 && counts.columns == 8 && counts.kept == 36 && counts.partial == 8);
  CHECK(counts.block_density == 36.0 / 64 && counts.longest_row == 8 && counts.shortest_row == 1);
  CHECK(counts.pair_density == 0 && counts.bytes > 0);
  CHECK_OK(annulus_pattern_statistics("causal", NULL, &sizes, NULL, &counts));
  CHECK(counts.kept == 36 && counts.pair_density == 257.0 / 512);
  CHECK(counts.overhead == counts.block_density / counts.pair_density);
  CHECK_OK(annulus_layout_reachability(near, 8, shares));
  CHECK(shares[0] < shares[1] && shares[7] == 36.0 / 64);
  CHECK_FAILS(annulus_layout_reachability(near, 0, shares), ANNULUS_INVALID_ARGUMENT, "0");
  CHECK_FAILS(annulus_layout_reachability(near, 8, NULL), ANNULUS_INVALID_ARGUMENT, "shares");
  CHECK_OK(annulus_layout_picture(near, NULL, &text));
  CHECK(text_has(text, "\n.+++...."));
  options.svg = 1;
  CHECK_OK(annulus_layout_picture(near, &options, &text));
  CHECK(text_has(text, "<svg"));
  options.svg = 2;
  CHECK_FAILS(annulus_layout_picture(near, &options, &text), ANNULUS_INVALID_ARGUMENT, "svg is 2");
  options.svg = 0;
  options.head = -1;
  CHECK_FAILS(annulus_layout_picture(near, &options, &text), ANNULUS_INVALID_ARGUMENT, "-1");
  CHECK_OK(annulus_layout_compare(lower, near, 2, &found, &text));
  CHECK(found.only_first == 15 && found.only_second == 0 && found.flags > 0);
  CHECK(text_has(text, "more rows"));
  CHECK_OK(annulus_layout_reblock(lower, 64, 64, &short_one));
  CHECK_OK(annulus_layout_compare(lower, short_one, 2, &found, &text));
  CHECK(found.same_sizes == 0 && found.only_first == 0);
  CHECK(text_has(text, "64"));
  CHECK_OK(annulus_layout_destroy(short_one));
  CHECK_OK(annulus_layout_destroy(near));
  CHECK_OK(annulus_layout_destroy(lower));
}

static void refused(const sample* made) {
  annulus_layout_sizes sizes = sizes_of(32, 256, 1);
  annulus_layout_options options = ANNULUS_LAYOUT_OPTIONS_INIT;
  annulus_layout_difference found = ANNULUS_LAYOUT_DIFFERENCE_INIT;
  annulus_block_layout arrays;
  annulus_layout* layout = make("causal", 1);
  annulus_layout* coarse = NULL;
  annulus_layout* none = NULL;
  const annulus_segment wrong = {-1, 10};
  CHECK_FAILS(annulus_layout_make("causal", NULL, NULL, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "annulus_layout_sizes is null");
  CHECK_FAILS(annulus_layout_make("causal", NULL, &sizes, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "layout (where the handle goes)");
  CHECK_FAILS(annulus_layout_make("cuasal", NULL, &sizes, NULL, &none), ANNULUS_PARSE, "column 1");
  options.threads = -2;
  CHECK_FAILS(annulus_layout_make("causal", NULL, &sizes, &options, &none),
              ANNULUS_INVALID_ARGUMENT, "-2 threads");
  options.threads = 0;
  options.device = (annulus_device*)layout;
  CHECK_FAILS(annulus_layout_make("causal", NULL, &sizes, &options, &none),
              ANNULUS_INVALID_ARGUMENT, "is not a handle of type device");
  options.device = made->device;
  CHECK_FAILS(annulus_layout_make("sum(causal, sink(2))", NULL, &sizes, &options, &none),
              ANNULUS_UNSUPPORTED, "sum");
  sizes.block_rows = -32;
  CHECK_FAILS(annulus_layout_make("causal", NULL, &sizes, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "-32");
  sizes.struct_size = 5;
  CHECK_FAILS(annulus_layout_make("causal", NULL, &sizes, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_layout_sizes is 5");
  arrays = arrays_of(layout);
  arrays.partial_count = 7;
  CHECK_FAILS(annulus_layout_create(&arrays, &none), ANNULUS_INVALID_ARGUMENT, "7 entries");
  CHECK_FAILS(annulus_layout_create(NULL, &none), ANNULUS_INVALID_ARGUMENT, "arrays is null");
  CHECK_FAILS(annulus_layout_slice(layout, &wrong, 1, &wrong, 1, &none), ANNULUS_INVALID_ARGUMENT,
              "-1");
  CHECK_FAILS(annulus_layout_slice(layout, NULL, 1, &wrong, 1, &none), ANNULUS_INVALID_ARGUMENT,
              "rows is null");
  CHECK_FAILS(annulus_layout_with_density(layout, 1.5, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "1.5");
  CHECK_FAILS(annulus_layout_compare(layout, layout, -1, &found, NULL), ANNULUS_INVALID_ARGUMENT,
              "max_lines is -1");
  CHECK_FAILS(annulus_layout_compare(layout, layout, 0, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_layout_difference is null");
  CHECK_OK(annulus_layout_reblock(layout, 64, 64, &coarse));
  CHECK_FAILS(annulus_layout_unite(layout, coarse, &none), ANNULUS_INVALID_ARGUMENT, "64");
  CHECK_FAILS(annulus_layout_unite(layout, NULL, &none), ANNULUS_INVALID_ARGUMENT, "is null");
  CHECK_OK(annulus_layout_destroy(coarse));
  CHECK_FAILS(annulus_layout_transpose(coarse, &none), ANNULUS_INVALID_ARGUMENT, "given back");
  CHECK_FAILS(annulus_layout_transpose(layout, NULL), ANNULUS_INVALID_ARGUMENT, "result");
  CHECK_FAILS(annulus_layout_get(layout, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_block_layout is null");
  CHECK_OK(annulus_layout_destroy(layout));
  CHECK(none == NULL);
}

void test_layout(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_make(made, device);
  in_a_scope();
  limited(made);
  made_and_lent(made);
  algebra();
  heads();
  told();
  refused(made);
  CHECK_OK(annulus_device_close(device));
  free(made);
}
