// Patterns as texts: their normal form, the pairs that they see, presets, and MInference's lists.

#include <annulus/c.h>
#include <annulus/c_layout.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"

// Whether a text is `expected`. Destroys the text.
static int is_text(annulus_text* text, const char* expected) {
  const char* characters = NULL;
  size_t length = 0;
  int same = 0;
  CHECK_OK(annulus_text_get(text, &characters, &length));
  same = strcmp(characters, expected) == 0 && length == strlen(expected);
  CHECK_OK(annulus_text_destroy(text));
  return same;
}

static void spellings(void) {
  annulus_text* text = NULL;
  const char* characters = NULL;
  CHECK_OK(annulus_pattern_normalise(" causal&(window( 7,0)|sink(3)) ", NULL, &text));
  CHECK(is_text(text, "causal & (window(7, 0) | sink(3))"));
  CHECK_FAILS(annulus_text_get(text, &characters, NULL), ANNULUS_INVALID_ARGUMENT, "the text was");
  CHECK_FAILS(annulus_text_destroy(NULL), ANNULUS_INVALID_ARGUMENT, "the text is null");
  CHECK_OK(annulus_pattern_normalise(NULL, NULL, &text));
  CHECK(is_text(text, "dense"));
  CHECK_FAILS(annulus_pattern_normalise("cuasal", NULL, &text), ANNULUS_PARSE, "column 1");
  CHECK_FAILS(annulus_pattern_normalise("causal", NULL, NULL), ANNULUS_INVALID_ARGUMENT, "text");
  CHECK_OK(annulus_score_normalise("alibi([ 0.5 ]),softcap(30)", &text));
  CHECK(is_text(text, "softcap(30), alibi([0.5])"));
  CHECK_FAILS(annulus_score_normalise(NULL, &text), ANNULUS_INVALID_ARGUMENT, "score is null");
  CHECK_FAILS(annulus_score_normalise("alibi([1", &text), ANNULUS_PARSE, "column 9");
  CHECK_OK(annulus_pattern_normalise("causal", NULL, &text));
  CHECK_FAILS(annulus_text_get(text, NULL, NULL), ANNULUS_INVALID_ARGUMENT, "characters");
  CHECK_OK(annulus_text_destroy(text));
}

static void facts(void) {
  annulus_pattern_info info = ANNULUS_PATTERN_INFO_INIT;
  CHECK_OK(annulus_pattern_get_info("sum(heads(causal, dense), sink(2))", NULL, 6, &info));
  CHECK(info.heads == 1 && info.distinct_heads == 2 && info.branches == 2);
  CHECK_OK(annulus_pattern_get_info(NULL, NULL, 6, &info));
  CHECK(info.heads == 1 && info.distinct_heads == 1 && info.branches == 1);
  CHECK(info.batches == 1);
  CHECK_OK(
      annulus_pattern_get_info("batches(heads(causal, dense), sink(2), dense)", NULL, 6, &info));
  CHECK(info.batches == 3 && info.distinct_heads == 2 && info.branches == 1);
  CHECK_FAILS(annulus_pattern_get_info("causal", NULL, 6, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_pattern_info is null");
  info.struct_size = 3;
  CHECK_FAILS(annulus_pattern_get_info("causal", NULL, 6, &info), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_pattern_info is 3");
}

static void pairs(void) {
  // In head 1 of a separate layout, queries 0 and 1 see keys 2 and 3, and the others see keys 0 and
  // 1.
  const int64_t indptr[] = {0, 1, 2, 3, 4};
  const int32_t indices[] = {0, 1, 1, 0};
  annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_pairs rectangle = ANNULUS_PAIRS_INIT;
  uint8_t visible[12];
  int i = 0;
  int j = 0;
  layout.block_rows = layout.block_columns = 2;
  layout.seq_q = layout.seq_k = 4;
  layout.heads = 2;
  layout.indptr = indptr;
  layout.indptr_count = 5;
  layout.indices = indices;
  layout.indices_count = 4;
  rectangle.head = 1;
  rectangle.q = 1;
  rectangle.q_count = 3;
  rectangle.k_count = 4;
  memset(visible, 7, sizeof visible);
  CHECK_OK(annulus_pattern_visible(NULL, &layout, &rectangle, visible));
  for (i = 0; i < 3; ++i) {
    for (j = 0; j < 4; ++j) CHECK(visible[4 * i + j] == ((i + 1 < 2) == (j >= 2)));
  }
  rectangle.q = -2;
  CHECK_OK(annulus_pattern_visible("causal", NULL, &rectangle, visible));
  for (i = 0; i < 12; ++i) CHECK(visible[i] == (i == 8));
  rectangle.k_count = -1;
  CHECK_FAILS(annulus_pattern_visible("causal", NULL, &rectangle, visible),
              ANNULUS_INVALID_ARGUMENT, "-1 positions of keys");
  rectangle.k_count = 4;
  rectangle.k = INT64_MAX;
  CHECK_FAILS(annulus_pattern_visible("causal", NULL, &rectangle, visible),
              ANNULUS_INVALID_ARGUMENT, "positions are between");
  rectangle.k = 0;
  CHECK_FAILS(annulus_pattern_visible("random(1, 0, 2)", NULL, &rectangle, visible),
              ANNULUS_INVALID_ARGUMENT, "give the number of its keys");
  CHECK_FAILS(annulus_pattern_visible("batches(causal, dense)", NULL, &rectangle, visible),
              ANNULUS_INVALID_ARGUMENT, "needs the number of the batch");
  rectangle.batch = 0;
  CHECK_OK(annulus_pattern_visible("batches(causal, dense)", NULL, &rectangle, visible));
  for (i = 0; i < 12; ++i) CHECK(visible[i] == (i == 8));
  rectangle.batch = 3;
  CHECK_OK(annulus_pattern_visible("batches(causal, dense)", NULL, &rectangle, visible));
  for (i = 0; i < 12; ++i) CHECK(visible[i] == 1);
  CHECK_FAILS(annulus_pattern_visible("causal", NULL, &rectangle, NULL), ANNULUS_INVALID_ARGUMENT,
              "visible is null");
  CHECK_FAILS(annulus_pattern_visible("causal", NULL, NULL, visible), ANNULUS_INVALID_ARGUMENT,
              "annulus_pairs is null");
}

static void of_batch(void) {
  annulus_text* text = NULL;
  CHECK_OK(annulus_pattern_of_batch("batches(causal,dense) & sink(2)", NULL, 4, &text));
  CHECK(is_text(text, "causal & sink(2)"));
  CHECK_OK(annulus_pattern_of_batch("causal", NULL, 4, &text));
  CHECK(is_text(text, "causal"));
  CHECK_FAILS(annulus_pattern_of_batch("batches(causal,dense)", NULL, -1, &text),
              ANNULUS_INVALID_ARGUMENT, "the context has -1");
  CHECK_FAILS(annulus_pattern_of_batch("batches(", NULL, 0, &text), ANNULUS_PARSE, "column 9");
  CHECK_FAILS(annulus_pattern_of_batch("causal", NULL, 0, NULL), ANNULUS_INVALID_ARGUMENT, "text");
}

static void all_words(void) {
  annulus_pattern_word word = ANNULUS_PATTERN_WORD_INIT;
  size_t i = 0;
  CHECK(annulus_pattern_word_count() > 20);
  for (i = 0; i < annulus_pattern_word_count(); ++i) {
    CHECK_OK(annulus_pattern_word_get(i, &word));
    CHECK(strncmp(word.form, word.name, strlen(word.name)) == 0);
    CHECK(strlen(word.meaning) > 8);
  }
  CHECK_OK(annulus_pattern_word_get(2, &word));
  CHECK(strcmp(word.form, "window(left, right)") == 0);
  CHECK_FAILS(annulus_pattern_word_get(i, &word), ANNULUS_INVALID_ARGUMENT, "word 2");
  CHECK_FAILS(annulus_pattern_word_get(0, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_pattern_word is null");
}

static void all_presets(void) {
  annulus_preset preset = ANNULUS_PRESET_INIT;
  annulus_text* text = NULL;
  char named[64] = "preset(";
  size_t i = 0;
  CHECK(annulus_preset_count() > 8);
  for (i = 0; i < annulus_preset_count(); ++i) {
    CHECK_OK(annulus_preset_get(i, &preset));
    CHECK(strlen(preset.name) > 2);
    CHECK(preset.density_4096 > preset.density_65536 && preset.density_16384 > 0);
    CHECK_OK(annulus_pattern_normalise(preset.expression, NULL, &text));
    CHECK_OK(annulus_text_destroy(text));
  }
  CHECK_OK(annulus_preset_get(0, &preset));
  strcat(strcat(named, preset.name), ")");
  CHECK_OK(annulus_pattern_normalise(named, NULL, &text));
  CHECK(is_text(text, preset.expression));
  CHECK_FAILS(annulus_preset_get(i, &preset), ANNULUS_INVALID_ARGUMENT, "preset 1");
  CHECK_FAILS(annulus_preset_get(0, NULL), ANNULUS_INVALID_ARGUMENT, "annulus_preset is null");
}

static void vertical_slash(void) {
  const int32_t verticals[] = {9, 1, 4, -1};
  const int32_t slashes[] = {0, 17};
  annulus_text* text = NULL;
  const char* pattern = NULL;
  annulus_arrays* arrays = NULL;
  annulus_array array;
  CHECK_OK(annulus_pattern_from_vertical_slash(2, verticals, 4, slashes, 2, &text));
  CHECK_OK(annulus_text_get(text, &pattern, NULL));
  CHECK_OK(annulus_pattern_to_vertical_slash(pattern, 2, &arrays));
  CHECK_OK(annulus_arrays_get(arrays, "verticals", &array));
  CHECK(array.type == ANNULUS_INT32 && array.count == 4);
  CHECK(((const int32_t*)array.data)[0] == 1 && ((const int32_t*)array.data)[1] == 9);
  CHECK(((const int32_t*)array.data)[2] == 4 && ((const int32_t*)array.data)[3] == -1);
  CHECK_OK(annulus_arrays_get(arrays, "slashes", &array));
  CHECK(array.count == 2 && ((const int32_t*)array.data)[1] == 17);
  CHECK_OK(annulus_arrays_destroy(arrays));
  CHECK_OK(annulus_text_destroy(text));
  CHECK_FAILS(annulus_pattern_from_vertical_slash(-1, verticals, 4, slashes, 2, &text),
              ANNULUS_INVALID_ARGUMENT, "-1");
  CHECK_FAILS(annulus_pattern_from_vertical_slash(1, NULL, 4, slashes, 2, &text),
              ANNULUS_INVALID_ARGUMENT, "verticals is null");
  CHECK_FAILS(annulus_pattern_to_vertical_slash("causal", 1, &arrays), ANNULUS_UNSUPPORTED,
              "is not vertical_slash()");
}

// Texts from untrusted sources: no files, a limit of work, and a flag.
static void texts_of_others(void) {
  annulus_work_limit limit = ANNULUS_WORK_LIMIT_INIT;
  const volatile int32_t set = 1, not_set = 0;
  CHECK_OK(annulus_pattern_check("causal & window(3,0)", NULL, 0, NULL));
  CHECK_FAILS(annulus_pattern_check("blocks(\"/no/such\")", NULL, 0, NULL), ANNULUS_PARSE,
              "names a file");
  CHECK_FAILS(annulus_pattern_check("blocks(\"/no/such\")", NULL, 1, NULL), ANNULUS_FILE,
              "/no/such");
  CHECK_FAILS(annulus_pattern_check("causal", NULL, 2, NULL), ANNULUS_INVALID_ARGUMENT,
              "allow_files is 2");
  CHECK_FAILS(annulus_pattern_check(NULL, NULL, 0, NULL), ANNULUS_INVALID_ARGUMENT, "pattern is");
  limit.max_work = 3;
  CHECK_FAILS(annulus_pattern_check("causal", NULL, 0, &limit), ANNULUS_LIMIT, "the call's 3");
  limit.max_work = -1;
  limit.cancel = &not_set;
  CHECK_OK(annulus_pattern_check("causal", NULL, 0, &limit));
  limit.cancel = &set;
  CHECK_FAILS(annulus_pattern_check("causal", NULL, 0, &limit), ANNULUS_CANCELLED, "cancelled");
}

void test_pattern(void) {
  texts_of_others();
  spellings();
  facts();
  pairs();
  of_batch();
  all_words();
  all_presets();
  vertical_slash();
}
