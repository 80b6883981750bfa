#ifndef ANNULUS_AUTOTUNE_REPORT_STORY_H_
#define ANNULUS_AUTOTUNE_REPORT_STORY_H_

// A search that is decided again from its journal: what it was for, in which order it tried what,
// and what came of it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/search.h"
#include "tuned/journal.h"

namespace annulus::autotune::report {

// A candidate when its turn came.
struct Step {
  std::size_t trial = 0;  // index of the result's trials
  bool dropped = false;
  double ratio = 1;  // then; what was measured again later has another one in the result
  double best = 1;   // of all up to it
};

struct Story {
  std::string path;    // of the journal
  std::string device;  // as the journal states them, and so anybody's text
  std::string shape;
  std::vector<std::pair<std::string, std::string>> facts;  // likewise: name and text
  bool predicted = false;
  bool ended = false;    // the journal has its last line
  bool damaged = false;  // something stands behind the last line that is whole
  // Nothing where the journal ends before the default was measured.
  std::optional<SearchResult> result;
  std::string why_no_result;
  std::size_t candidates = 0;
  std::vector<Step> steps;

  // Trials other than the default that were measured in the last rounds, and with L2 in its other
  // state; where there are none, the best ones, at most five. The winner is among them unless it is
  // the default.
  std::vector<std::size_t> finalists() const;
};

// `text` is that of a journal's file. Throws Error{kInvalidFile} with the path where it is none.
tuned::Journal journal_of(const std::string& path, const std::string& text);

// Decides the search again. `text` is what the journal was read from.
Story story_of(const std::string& path, const tuned::Journal& journal, const std::string& text);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_STORY_H_
