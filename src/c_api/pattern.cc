// The C interface of patterns as texts. Each function converts its arguments and calls
// annulus/pattern.h.
#include "annulus/c.h"
#include "annulus/c_tools.h"

#include "annulus/layout.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

constexpr StructName kPatternInfo = {"annulus_pattern_info", "ANNULUS_PATTERN_INFO_INIT"};
constexpr StructName kPairs = {"annulus_pairs", "ANNULUS_PAIRS_INIT"};
constexpr StructName kPatternWord = {"annulus_pattern_word", "ANNULUS_PATTERN_WORD_INIT"};
constexpr StructName kPreset = {"annulus_preset", "ANNULUS_PRESET_INIT"};

// Throws Error{kInvalidArgument} if a side of a rectangle is not within the range of positions.
void check_range(const char* name, std::int64_t start, std::int64_t count) {
  if (count >= 0 && start >= -kMaxPosition && start <= kMaxPosition && count <= 2 * kMaxPosition &&
      start + count <= kMaxPosition) {
    return;
  }
  base::fail(ErrorCode::kInvalidArgument,
             "{} positions of {} from {}; positions are between -2^30 and 2^30", count, name,
             start);
}

}  // namespace

HandleTable<TextObject>& texts() {
  static auto* table = new HandleTable<TextObject>("text", 0x79);
  return *table;
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_text_get(annulus_text* text, const char** characters, size_t* length) {
  return guarded([&] {
    const TextPin pin(texts(), number(text));
    check_pointer("characters (where the text goes)", characters);
    *characters = pin->text.c_str();
    if (length != nullptr) *length = pin->text.size();
  });
}

annulus_status annulus_text_destroy(annulus_text* text) {
  return guarded([&] { texts().erase(number(text)); });
}

annulus_status annulus_pattern_normalise(const char* pattern, const annulus_block_layout* layout,
                                         annulus_text** text) {
  return guarded([&] {
    check_pointer("text (where the handle goes)", text);
    give_text(text, pattern_of(pattern, layout).to_string());
  });
}

annulus_status annulus_pattern_check(const char* pattern, const annulus_block_layout* layout,
                                     int32_t allow_files, const annulus_work_limit* limit) {
  return guarded([&] {
    check_pointer("pattern", pattern);
    pattern_of(pattern, layout, {truth("allow_files", allow_files), work_limit_of(limit)});
  });
}

annulus_status annulus_score_normalise(const char* score, annulus_text** text) {
  return guarded([&] {
    check_pointer("score", score);
    check_pointer("text (where the handle goes)", text);
    give_text(text, Score::parse(score).to_string());
  });
}

annulus_status annulus_pattern_get_info(const char* pattern, const annulus_block_layout* layout,
                                        int64_t heads, annulus_pattern_info* to) {
  return guarded([&] {
    const Pattern parsed = pattern_of(pattern, layout);
    annulus_pattern_info c = ANNULUS_PATTERN_INFO_INIT;
    c.heads = parsed.heads();
    c.distinct_heads = parsed.distinct_heads(heads);
    c.branches = static_cast<std::int64_t>(parsed.branches().size());
    c.batches = parsed.batches();
    write_struct(kPatternInfo, to, c);
  });
}

annulus_status annulus_pattern_visible(const char* pattern, const annulus_block_layout* layout,
                                       const annulus_pairs* given, uint8_t* visible) {
  return guarded([&] {
    const annulus_pairs pairs = read_struct(kPairs, given, annulus_pairs ANNULUS_PAIRS_INIT);
    check_range("queries", pairs.q, pairs.q_count);
    check_range("keys", pairs.k, pairs.k_count);
    if (pairs.q_count == 0 || pairs.k_count == 0) return;
    check_pointer("visible", visible);
    const Pattern parsed = pattern_of(pattern, layout);
    const PatternContext context = {pairs.total_k, pairs.layer, pairs.batch};
    for (std::int64_t i = 0; i < pairs.q_count; ++i) {
      for (std::int64_t j = 0; j < pairs.k_count; ++j) {
        visible[i * pairs.k_count + j] =
            parsed.visible(pairs.head, pairs.q + i, pairs.k + j, context) ? 1 : 0;
      }
    }
  });
}

annulus_status annulus_pattern_of_batch(const char* pattern, const annulus_block_layout* layout,
                                        int64_t batch, annulus_text** text) {
  return guarded([&] {
    check_pointer("text (where the handle goes)", text);
    give_text(text, pattern_of(pattern, layout).of_batch(batch).to_string());
  });
}

annulus_status annulus_pattern_from_vertical_slash(int64_t heads, const int32_t* verticals,
                                                   size_t vertical_count, const int32_t* slashes,
                                                   size_t slash_count, annulus_text** pattern) {
  return guarded([&] {
    check_pointer("pattern (where the handle goes)", pattern);
    if (vertical_count > 0) check_pointer("verticals", verticals);
    if (slash_count > 0) check_pointer("slashes", slashes);
    give_text(pattern,
              from_vertical_slash(heads, {verticals, vertical_count}, {slashes, slash_count})
                  .to_string());
  });
}

size_t annulus_pattern_word_count(void) { return pattern_words().size(); }

annulus_status annulus_pattern_word_get(size_t index, annulus_pattern_word* to) {
  return guarded([&] {
    if (index >= pattern_words().size()) {
      base::fail(ErrorCode::kInvalidArgument, "word {} of {}", index, pattern_words().size());
    }
    const PatternWord& word = pattern_words()[index];
    annulus_pattern_word c = ANNULUS_PATTERN_WORD_INIT;
    c.name = word.name.data();  // literals, so they end with a zero byte
    c.form = word.form.data();
    c.meaning = word.meaning.data();
    write_struct(kPatternWord, to, c);
  });
}

size_t annulus_preset_count(void) { return presets().size(); }

annulus_status annulus_preset_get(size_t index, annulus_preset* to) {
  return guarded([&] {
    if (index >= presets().size()) {
      base::fail(ErrorCode::kInvalidArgument, "preset {} of {}", index, presets().size());
    }
    const PresetInfo& info = presets()[index];
    annulus_preset c = ANNULUS_PRESET_INIT;
    c.name = info.name.data();  // literals, so they end with a zero byte
    c.expression = info.expression.data();
    c.density_4096 = info.density[0];
    c.density_16384 = info.density[1];
    c.density_65536 = info.density[2];
    write_struct(kPreset, to, c);
  });
}

}  // extern "C"
