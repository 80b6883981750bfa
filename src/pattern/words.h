#ifndef ANNULUS_PATTERN_WORDS_H_
#define ANNULUS_PATTERN_WORDS_H_

// The words of the language, and advice about an unknown word.

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace annulus::pattern {

// Words of the language that this version does not evaluate. The error for such a word is
// kUnsupported, not a typing error.
constexpr std::string_view kLaterWords[] = {"topk", "scale",      "softcap",  "alibi",
                                            "bias", "sink_logit", "score_mod"};

inline bool is_later_word(std::string_view name) {
  return std::find(std::begin(kLaterWords), std::end(kLaterWords), name) != std::end(kLaterWords);
}

// The word of the language that means what `name` means in other libraries and papers; `name`
// itself if there is none.
std::string_view word_of_others(std::string_view name);

// "did you mean 'causal'?" if a known word is similar, else the list of known words.
std::string advice(std::string_view name, std::span<const std::string_view> known);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_WORDS_H_
