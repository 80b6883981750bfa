#ifndef ANNULUS_C_PATTERN_H_
#define ANNULUS_C_PATTERN_H_

// The C interface of patterns beyond their use in a problem, annulus/pattern.h. In C a pattern is
// its text (docs/patterns.md), with or without a layout that blocks() in it stands for; where a
// function takes both, a null text is dense, or blocks() where a layout is given, as in
// annulus_problem. The conventions are those at the top of annulus/c.h. Nothing here needs a
// device.

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Texts: what a function wrote for people or for a log

typedef struct annulus_text annulus_text;

// *characters stays as long as the handle. *length is without the zero byte; `length` may be null.
ANNULUS_EXPORT annulus_status annulus_text_get(annulus_text* text, const char** characters,
                                               size_t* length);
ANNULUS_EXPORT annulus_status annulus_text_destroy(annulus_text* text);

// ---- Patterns and scores as texts

// Gives the normal spelling of a pattern: texts of equal trees become equal. A text that is no
// pattern is ANNULUS_PARSE, with the column.
ANNULUS_EXPORT annulus_status annulus_pattern_normalise(const char* pattern,
                                                        const annulus_block_layout* layout,
                                                        annulus_text** text);
// Checks a text that somebody else wrote: ANNULUS_PARSE also where it names a file, as in
// blocks("file"), unless `allow_files` is 1. The other functions read files that a text names, with
// the rights of this process. A null limit is the default one.
ANNULUS_EXPORT annulus_status annulus_pattern_check(const char* pattern,
                                                    const annulus_block_layout* layout,
                                                    int32_t allow_files,
                                                    const annulus_work_limit* limit);
// Gives the normal spelling of a score; the text is empty where nothing is set.
ANNULUS_EXPORT annulus_status annulus_score_normalise(const char* score, annulus_text** text);

typedef struct annulus_pattern_info {
  size_t struct_size;
  int64_t heads;           // H of its per-head layouts; 1 stands for any number
  int64_t distinct_heads;  // of the heads that were asked about: head h sees what head h mod this
                           // number sees
  int64_t branches;        // branches of a sum; else 1
  int64_t batches;         // batch b sees what batch b mod this number sees; 1: all see the same
} annulus_pattern_info;

#define ANNULUS_PATTERN_INFO_INIT \
  { sizeof(annulus_pattern_info), 0, 0, 0, 0 }

// ANNULUS_INVALID_ARGUMENT where the pattern is made for another number of heads.
ANNULUS_EXPORT annulus_status annulus_pattern_get_info(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t heads, annulus_pattern_info* info);

// A rectangle of pairs of one head: query positions [q, q + q_count), key positions likewise. They
// may be negative.
typedef struct annulus_pairs {
  size_t struct_size;
  int64_t head;
  int64_t q;
  int64_t q_count;
  int64_t k;
  int64_t k_count;
  int64_t total_k;  // keys of the whole sequence, on which random() depends; -1: not known
  int64_t layer;    // layer of the model
  int64_t batch;    // batch on which batches(...) depends; -1: not known
} annulus_pairs;

#define ANNULUS_PAIRS_INIT \
  { sizeof(annulus_pairs), 0, 0, 0, 0, 0, -1, 0, -1 }

// Writes visible [q_count, k_count]: 1 where the query sees the key (for a sum, through some
// branch). The pattern is asked pair by pair, so this is for checks and pictures.
ANNULUS_EXPORT annulus_status annulus_pattern_visible(const char* pattern,
                                                      const annulus_block_layout* layout,
                                                      const annulus_pairs* pairs, uint8_t* visible);

// What one batch sees, as a pattern without batches(...). A layout given beside the text is named
// by its digest, as in annulus_pattern_normalise.
ANNULUS_EXPORT annulus_status annulus_pattern_of_batch(const char* pattern,
                                                       const annulus_block_layout* layout,
                                                       int64_t batch, annulus_text** text);

// Makes a pattern from MInference's lists: [heads, vertical_count / heads] columns that every query
// sees and [heads, slash_count / heads] offsets q - k, each padded with -1.
ANNULUS_EXPORT annulus_status annulus_pattern_from_vertical_slash(
    int64_t heads, const int32_t* verticals, size_t vertical_count, const int32_t* slashes,
    size_t slash_count, annulus_text** pattern);

// ---- Words of patterns: leaves, then those that join patterns

typedef struct annulus_pattern_word {
  size_t struct_size;
  const char* name;     // "window"; stays as long as the library
  const char* form;     // with its arguments named: "window(left, right)"; likewise
  const char* meaning;  // what a query sees, in a line; likewise
} annulus_pattern_word;

#define ANNULUS_PATTERN_WORD_INIT \
  { sizeof(annulus_pattern_word), NULL, NULL, NULL }

ANNULUS_EXPORT size_t annulus_pattern_word_count(void);
// An index of annulus_pattern_word_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_pattern_word_get(size_t index, annulus_pattern_word* word);

// ---- Presets: patterns with a name, which preset("name") in a text stands for

typedef struct annulus_preset {
  size_t struct_size;
  const char* name;        // stays as long as the library
  const char* expression;  // likewise
  double density_4096;     // visible pairs over all pairs of 12 heads at Sq = Sk = 4096
  double density_16384;
  double density_65536;
} annulus_preset;

#define ANNULUS_PRESET_INIT \
  { sizeof(annulus_preset), NULL, NULL, 0.0, 0.0, 0.0 }

ANNULUS_EXPORT size_t annulus_preset_count(void);
// An index of annulus_preset_count() or more is ANNULUS_INVALID_ARGUMENT.
ANNULUS_EXPORT annulus_status annulus_preset_get(size_t index, annulus_preset* preset);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_PATTERN_H_
