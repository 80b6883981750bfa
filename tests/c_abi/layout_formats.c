// Layouts in both directions: as the arrays of each format, in files, and from the cache.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_layout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"

static const annulus_layout_sizes kSizes = {sizeof kSizes, 32, 32, 256, 256, 2};

static annulus_layout* make(const char* pattern) {
  annulus_layout* layout = NULL;
  CHECK_OK(annulus_layout_make(pattern, NULL, &kSizes, NULL, &layout));
  return layout;
}

// Whether two layouts are equal, including flags. Destroys `other`.
static int same(annulus_layout* layout, annulus_layout* other) {
  annulus_layout_difference found = ANNULUS_LAYOUT_DIFFERENCE_INIT;
  CHECK_OK(annulus_layout_compare(layout, other, 0, &found, NULL));
  CHECK_OK(annulus_layout_destroy(other));
  return found.same_sizes && found.only_first + found.only_second + found.flags == 0;
}

static void there_and_back(annulus_layout* layout, int32_t format, int32_t names,
                           const char* const* name) {
  annulus_arrays* arrays = NULL;
  annulus_array each[4];
  annulus_layout* back = NULL;
  int32_t i = 0;
  CHECK_OK(annulus_layout_to_arrays(layout, format, &arrays));
  for (i = 0; i < names; ++i) CHECK_OK(annulus_arrays_get(arrays, name[i], &each[i]));
  CHECK_OK(annulus_layout_from_arrays(format, &kSizes, each, (size_t)names, &back));
  CHECK(same(layout, back));
  CHECK_OK(annulus_arrays_destroy(arrays));
}

static void formats(void) {
  static const char* const mask[] = {"mask"};
  static const char* const csr[] = {"indptr", "indices", "partial"};
  static const char* const coo[] = {"partial", "columns", "rows", "heads"};
  static const char* const bits[] = {"kept", "partial"};
  static const char* const topk[] = {"indices", "partial"};
  static const char* const flex[] = {"kv_num_blocks", "kv_indices", "full_kv_num_blocks",
                                     "full_kv_indices"};
  annulus_layout* layout = make("random(3, 1, 32) | window(20, 0)");
  there_and_back(layout, ANNULUS_LAYOUT_MASK, 1, mask);
  there_and_back(layout, ANNULUS_LAYOUT_CSR, 3, csr);
  there_and_back(layout, ANNULUS_LAYOUT_COO, 4, coo);
  there_and_back(layout, ANNULUS_LAYOUT_BITSET, 2, bits);
  there_and_back(layout, ANNULUS_LAYOUT_TOPK, 2, topk);
  there_and_back(layout, ANNULUS_LAYOUT_FLEX, 4, flex);
  CHECK_OK(annulus_layout_destroy(layout));
}

// FlashInfer's format has one head. A mask of pairs becomes a layout with smaller blocks.
static void flashinfer(void) {
  annulus_layout_sizes sizes = {sizeof sizes, 2, 2, 4, 4, 1};
  const int32_t indptr[] = {0, 1, 2};
  const int32_t indices[] = {0, 1};
  const uint8_t mask[] = {1, 1, 1, 1, 1, 0, 1, 1};
  const annulus_array arrays[] = {{"indptr", indptr, 3, ANNULUS_INT32},
                                  {"indices", indices, 2, ANNULUS_INT32},
                                  {"mask", mask, 8, ANNULUS_UINT8}};
  annulus_layout* whole = NULL;
  annulus_layout* masked = NULL;
  annulus_arrays* back = NULL;
  annulus_array array;
  annulus_block_layout read = ANNULUS_BLOCK_LAYOUT_INIT;
  CHECK_OK(annulus_layout_from_arrays(ANNULUS_LAYOUT_FLASHINFER, &sizes, arrays, 2, &whole));
  CHECK_OK(annulus_layout_to_arrays(whole, ANNULUS_LAYOUT_FLASHINFER, &back));
  CHECK_OK(annulus_arrays_get(back, "indptr", &array));
  CHECK(array.type == ANNULUS_INT32 && array.count == 3);
  CHECK(memcmp(array.data, indptr, sizeof indptr) == 0);
  CHECK_OK(annulus_layout_from_arrays(ANNULUS_LAYOUT_FLASHINFER, &sizes, arrays, 3, &masked));
  CHECK_OK(annulus_layout_get(masked, &read));
  CHECK(read.block_rows == 1 && read.indices_count == 7 && read.partial == NULL);
  CHECK_OK(annulus_arrays_destroy(back));
  CHECK_OK(annulus_layout_destroy(whole));
  CHECK_OK(annulus_layout_destroy(masked));
}

static void wrong_arrays(void) {
  const int64_t indptr[17] = {0, 1};
  const int32_t narrow[17] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int32_t indices[] = {9};
  annulus_array arrays[] = {{"indptr", indptr, 17, ANNULUS_INT64},
                            {"indices", indices, 1, ANNULUS_INT32}};
  annulus_arrays* set = NULL;
  annulus_array array;
  annulus_layout* layout = NULL;
#define REFUSED(format, count, part)                                                   \
  CHECK_FAILS(annulus_layout_from_arrays((format), &kSizes, arrays, (count), &layout), \
              ANNULUS_INVALID_ARGUMENT, (part))
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "indptr");
  arrays[0].data = narrow;
  arrays[0].type = ANNULUS_INT32;
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "indices[0]");
  arrays[0].type = ANNULUS_UINT8;
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "indptr is uint8; give int64");
  arrays[1].type = 77;
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "indices is an unknown type; give int32");
  REFUSED(ANNULUS_LAYOUT_CSR, 1, "'indices' is missing");
  REFUSED(ANNULUS_LAYOUT_COO, 2, "no array 'indptr', but heads, rows, columns, partial");
  REFUSED(ANNULUS_LAYOUT_NPY, 2, "'npy' exists only as files");
  REFUSED(ANNULUS_LAYOUT_OWN, 0, "'layout' exists only as files");
  REFUSED(9, 2, "format is 9");
  REFUSED(-1, 2, "format is -1");
  REFUSED(ANNULUS_LAYOUT_TOPK, 0, "'indices' is missing");
  arrays[0].name = NULL;
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "name of an array is null");
  arrays[0].name = "indptr";
  arrays[0].data = NULL;
  REFUSED(ANNULUS_LAYOUT_CSR, 2, "indptr is null");
#undef REFUSED
  CHECK_FAILS(annulus_layout_from_arrays(ANNULUS_LAYOUT_CSR, &kSizes, NULL, 2, &layout),
              ANNULUS_INVALID_ARGUMENT, "arrays is null");
  CHECK(layout == NULL);
  layout = make("causal");
  CHECK_FAILS(annulus_layout_to_arrays(layout, ANNULUS_LAYOUT_NPY, &set), ANNULUS_INVALID_ARGUMENT,
              "only as files");
  CHECK_FAILS(annulus_layout_to_arrays(layout, ANNULUS_LAYOUT_CSR, NULL), ANNULUS_INVALID_ARGUMENT,
              "arrays");
  CHECK_OK(annulus_layout_to_arrays(layout, ANNULUS_LAYOUT_CSR, &set));
  CHECK_FAILS(annulus_arrays_get(set, "heads", &array), ANNULUS_INVALID_ARGUMENT,
              "no array 'heads', but indptr, indices, partial");
  CHECK_FAILS(annulus_arrays_get(set, "indptr", NULL), ANNULUS_INVALID_ARGUMENT, "array (where");
  CHECK_OK(annulus_arrays_destroy(set));
  CHECK_FAILS(annulus_arrays_destroy(set), ANNULUS_INVALID_ARGUMENT, "given back");
  CHECK_OK(annulus_layout_destroy(layout));
}

static void files(void) {
  const char* parent = getenv("TMPDIR");
  char folder[512];
  char path[576];
  annulus_layout_sizes sizes = {sizeof sizes, 0, 0, 0, 0, 0};
  annulus_layout* layout = make("heads(causal, window(40, 0))");
  annulus_layout* back = NULL;
  snprintf(folder, sizeof folder, "%s/annulus_c_XXXXXX", parent == NULL ? "/tmp" : parent);
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/one.layout", folder);
  CHECK_OK(annulus_layout_save(layout, path));
  CHECK_OK(annulus_layout_load(path, &back));
  CHECK(same(layout, back));
  CHECK_OK(annulus_layout_map(path, &back));
  CHECK(same(layout, back));
  CHECK_OK(annulus_layout_import(path, ANNULUS_LAYOUT_OWN, NULL, &back));
  CHECK(same(layout, back));
  CHECK_FAILS(annulus_layout_import(path, ANNULUS_LAYOUT_CSR, NULL, &back), ANNULUS_INVALID_FILE,
              path);
  CHECK_OK(annulus_layout_export(layout, path, ANNULUS_LAYOUT_CSR));
  CHECK_OK(annulus_layout_import(path, ANNULUS_LAYOUT_CSR, &sizes, &back));
  CHECK(same(layout, back));
  sizes.heads = 3;
  CHECK_FAILS(annulus_layout_import(path, ANNULUS_LAYOUT_CSR, &sizes, &back), ANNULUS_INVALID_FILE,
              "heads");
  CHECK_FAILS(annulus_layout_load(path, &back), ANNULUS_INVALID_FILE, path);
  CHECK(remove(path) == 0);
  CHECK_FAILS(annulus_layout_map(path, &back), ANNULUS_FILE, path);
  CHECK_FAILS(annulus_layout_load(NULL, &back), ANNULUS_INVALID_ARGUMENT, "path is null");
  CHECK_FAILS(annulus_layout_save(layout, NULL), ANNULUS_INVALID_ARGUMENT, "path is null");
  CHECK_FAILS(annulus_layout_export(layout, path, 99), ANNULUS_INVALID_ARGUMENT, "format is 99");
  CHECK(rmdir(folder) == 0);
  CHECK_OK(annulus_layout_destroy(layout));
}

static void cache(void) {
  annulus_cache_limits limits = ANNULUS_CACHE_LIMITS_INIT;
  annulus_cache_counters counters = ANNULUS_CACHE_COUNTERS_INIT;
  annulus_layout_cache* kept = NULL;
  annulus_layout_query* query = NULL;
  annulus_layout* first = NULL;
  annulus_layout* second = NULL;
  annulus_block_layout a = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_block_layout b = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_work_limit few = ANNULUS_WORK_LIMIT_INIT;
  annulus_text* key = NULL;
  const char* characters = NULL;
  int64_t position = -1;
  limits.entries = 4;
  CHECK_OK(annulus_layout_cache_create(&limits, &kept));
  CHECK_OK(annulus_layout_query_create("causal & window(63, 0)", NULL, 32, 32, 1, 0, &query));
  CHECK_OK(annulus_layout_query_key(query, 256, 256, &key));
  CHECK_OK(annulus_text_get(key, &characters, NULL));
  CHECK(strlen(characters) > 0);
  CHECK_OK(annulus_text_destroy(key));
  CHECK_OK(annulus_layout_cache_get(kept, query, 1, 250, NULL, &first, &position));
  CHECK(position == 224);
  CHECK_OK(annulus_layout_cache_get(kept, query, 1, 251, NULL, &second, &position));
  CHECK_OK(annulus_layout_get(first, &a));
  CHECK_OK(annulus_layout_get(second, &b));
  CHECK(a.indices == b.indices);  // the memory is shared
  CHECK_OK(annulus_layout_cache_get_counters(kept, &counters));
  CHECK(counters.hits == 1 && counters.misses == 1 && counters.entries == 1);
  CHECK_OK(annulus_layout_cache_clear(kept));
  CHECK_OK(annulus_layout_cache_get_counters(kept, &counters));
  CHECK(counters.entries == 0 && counters.bytes == 0);
  CHECK_FAILS(annulus_layout_cache_get(kept, query, -1, 250, NULL, &first, &position),
              ANNULUS_INVALID_ARGUMENT, "-1");
  CHECK_FAILS(annulus_layout_cache_get(kept, query, 1, 250, NULL, &first, NULL),
              ANNULUS_INVALID_ARGUMENT, "q_position");
  few.max_work = 3;
  CHECK_FAILS(annulus_layout_cache_get(kept, query, 200000, 200000, &few, &first, &position),
              ANNULUS_LIMIT, "the call's 3");
  CHECK_OK(annulus_layout_cache_destroy(kept));
  CHECK(a.indices[0] >= 0);  // valid without the cache
  CHECK_OK(annulus_layout_destroy(first));
  CHECK_OK(annulus_layout_destroy(second));
  CHECK_FAILS(annulus_layout_cache_get(kept, query, 1, 250, NULL, &first, &position),
              ANNULUS_INVALID_ARGUMENT, "the layout cache was given back");
  CHECK_OK(annulus_layout_query_destroy(query));
  CHECK_FAILS(annulus_layout_query_destroy(query), ANNULUS_INVALID_ARGUMENT, "layout query was");
  CHECK_FAILS(annulus_layout_query_create("causal", NULL, 0, 32, 1, 0, &query),
              ANNULUS_INVALID_ARGUMENT, "0");
  limits.bytes = -1;
  CHECK_FAILS(annulus_layout_cache_create(&limits, &kept), ANNULUS_INVALID_ARGUMENT,
              "a cache of -1 bytes");
}

void test_layout_formats(void) {
  formats();
  flashinfer();
  wrong_arrays();
  files();
  cache();
}
