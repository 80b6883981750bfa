#ifndef ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_

// The document of a report as plain data. docs/tuning.md describes its members, units and schema.
// Each value is checked when it is read, as the source of a document is not known.

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
  std::vector<std::int64_t> parameters;  // in the order of the family's names
  double predicted_cycles = 0;           // infinite if there is no prediction
  enum class Outcome { kNotTried, kDropped, kTried } outcome = Outcome::kNotTried;
  std::string reason;  // why it was dropped
  double time = 0;     // median; 0, as the next two, unless it was tried
  Interval ratio;
  std::int64_t rounds = 0;
};

// A trial when its turn came.
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
  std::string why_undecided;  // without a decision
  std::optional<Stored> stored;

  // Require: a decision.
  const Trial& winner() const { return decision->trials[decision->winner]; }
  const Trial& standard() const { return decision->trials[decision->default_at]; }
};

class Document {
 public:
  // The most bytes that are read.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  // `what` names the text in errors. Throws Error{kInvalidFile} if the text is no JSON, longer than
  // kMostBytes, or of another schema.
  Document(std::string_view text, std::string what);

  // These throw Error{kInvalidFile} with the place of a member that is missing, of another type or
  // out of its range.
  std::size_t searches() const;
  Search search(std::size_t index) const;
  std::size_t results() const;  // without a journal
  Stored result(std::size_t index) const;
  std::vector<std::string> left_out() const;  // lines
  std::int64_t further_left_out() const;      // lines that the document does not have

 private:
  base::Json json_;
  std::string what_;
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_DOCUMENT_H_
