#ifndef ANNULUS_AUTOTUNE_REPORT_STORY_H_
#define ANNULUS_AUTOTUNE_REPORT_STORY_H_

// A search that is repeated from its journal: its purpose, the order in which it tried candidates,
// and its outcome.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/search.h"
#include "tuned/journal.h"

namespace annulus::autotune::report {

// A candidate at the time when it was tried.
struct Step {
  std::size_t trial = 0;  // index in the result's trials
  bool dropped = false;
  double ratio = 1;  // at that time; if it was measured again later, the result has another ratio
  double best = 1;   // the best ratio up to this step
};

struct Story {
  std::string path;    // the path of the journal
  std::string device;  // the text in the journal, which is untrusted
  std::string shape;
  std::vector<std::pair<std::string, std::string>> facts;  // name and text; also untrusted
  bool predicted = false;
  bool ended = false;    // the journal has its last line
  bool damaged = false;  // there is text after the last complete line
  // No value if the journal ends before the default was measured.
  std::optional<SearchResult> result;
  std::string why_no_result;
  std::size_t candidates = 0;
  std::vector<Step> steps;

  // The trials, other than the default, that were measured in the final rounds and with the other
  // state of L2. Without such trials: at most five, the best. The winner is one of them unless
  // it is the default.
  std::vector<std::size_t> finalists() const;
};

// `text` is the content of a journal's file. Throws Error{kInvalidFile} with the path if it is not
// a journal.
tuned::Journal journal_of(const std::string& path, const std::string& text);

// Repeats the search. `text` is the text that the journal was read from.
Story story_of(const std::string& path, const tuned::Journal& journal, const std::string& text);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_STORY_H_
