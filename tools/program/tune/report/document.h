#ifndef ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_

// The document of a report as plain data. docs/tuning.md describes its members, units and schema.
// Each value is checked when it is read, because the document may come from anywhere.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace annulus::program::report {

// An interval around a median. Its ends are infinite if it is not bounded.
struct Interval {
  double low = 1;
  double middle = 1;
  double high = 1;
};

struct Trial {
  std::string configuration;
  std::string family;                    // a key of Decision::families
  std::vector<std::int64_t> parameters;  // the values, in the order of the family's names
  double predicted_cycles = 0;           // infinite if there is no prediction
  enum class Outcome { kNotTried, kDropped, kTried } outcome = Outcome::kNotTried;
  std::string reason;  // why it was dropped, if it was
  // The median; like the next two members it is 0 unless the candidate was tried.
  double time = 0;
  Interval ratio;
  std::int64_t rounds = 0;
};

// A candidate of a search, at its turn.
struct Step {
  std::size_t trial = 0;  // index of the trials
  bool dropped = false;
  double ratio = 1;
  double best = 1;  // the best ratio so far
};

// The outcome of a search.
struct Decision {
  bool complete = false;
  std::int64_t tried = 0;
  std::int64_t dropped = 0;
  std::size_t winner = 0;      // index of a trial that was tried
  std::size_t default_at = 0;  // index of a trial that was tried
  std::optional<std::size_t> runner_up;
  double winner_time = 0;
  double default_time = 0;
  std::vector<std::size_t> finalists;  // trials that were tried, without the default
  std::map<std::string, std::vector<std::string>> families;  // the names of their parameters
  std::vector<Trial> trials;
  std::vector<Step> order;
};

// A result that was stored.
struct Stored {
  std::string path, device, shape, configuration, default_configuration, pattern;
  bool predicted = false;
  bool complete = false;
  double time = 0;
  double default_time = 0;
  Interval ratio;
  std::int64_t driver = 0;
  std::int64_t nvrtc = 0;
  std::int64_t clock_mhz = 0;
  std::int64_t memory_clock_mhz = 0;
  std::int64_t when = 0;  // seconds since 1970
};

struct Search {
  std::string journal, device, shape;
  std::vector<std::pair<std::string, std::string>> facts;  // name and text
  bool predicted = false;                                  // times are cycles, not microseconds
  bool ended = false;
  bool damaged = false;
  std::int64_t candidates = 1;
  std::optional<Decision> decision;
  std::string why_undecided;  // set if there is no decision
  std::optional<Stored> stored;

  // These require a decision.
  const Trial& winner() const { return decision->trials[decision->winner]; }
  const Trial& standard() const { return decision->trials[decision->default_at]; }
};

class Document {
 public:
  // The largest document that is read, in bytes.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  // `what` names the text in errors. Throws Error{kInvalidFile} if the text is not JSON, is longer
  // than kMaxBytes, or has another schema.
  Document(std::string_view text, std::string what);

  // These functions throw Error{kInvalidFile} with the place of a member that is missing, has the
  // wrong type or is out of range.
  std::size_t searches() const;
  Search search(std::size_t index) const;
  std::size_t results() const;  // stored results without a journal
  Stored result(std::size_t index) const;
  std::vector<std::string> left_out() const;  // a line for each file that was left out
  // The number of further lines, which the document does not contain.
  std::int64_t further_left_out() const;

 private:
  base::Json json_;
  std::string what_;
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_
