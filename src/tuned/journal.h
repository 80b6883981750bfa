#ifndef ANNULUS_TUNED_JOURNAL_H_
#define ANNULUS_TUNED_JOURNAL_H_

// The findings of a search so far, one per line. A search whose process was killed continues from
// them, and a user can follow its decisions without the device. A search depends only on its
// candidates and on the answers of its workbench. A journal has both:
//
//   annulus-journal 2 <32 hex digits> {"device":"...", ..., "candidates":[["mma m64 ...",1234.5],...]}
//   <32 hex digits> {"dropped":"mma m64 ...","why":"spills"}
//   <32 hex digits> {"tried":["mma m64 ...","mma m128 ..."],"times":[[10.5,...],[9.75,...]],"cold":false}
//   <32 hex digits> {"ended":true}
//
// The digits are the XXH3-128 of the text between them and the end of the line. A line is added
// after a candidate was dropped or measured, so a killed process loses only the candidate that it
// was working on. The first line that is damaged or invalid, and all lines after it, are not used.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuned/entry.h"
#include "tuned/trial.h"

namespace annulus::tuned {

// Must be raised if a member changes its meaning.
inline constexpr int kJournalSchema = 2;
inline constexpr std::string_view kJournalSuffix = ".journal";
inline constexpr std::int64_t kMaxJournalBytes = 64 << 20;

// One answer of a workbench: a candidate was dropped, or candidates were measured.
struct Finding {
  std::vector<std::string> configs;    // in the form of to_string(); exactly one if it was dropped
  std::optional<std::string> dropped;  // the reason, if it was dropped
  // in the form of Workbench::measure(); empty if it was dropped
  std::vector<std::vector<double>> times;
  CacheState l2 = CacheState::kWarm;  // the state of L2 in these measurements
};

struct Journal {
  base::Json subject;         // the first line: everything that the answers depend on
  std::vector<Trial> trials;  // the candidates of the subject, none of them tried yet
  std::size_t default_at = 0;
  bool predicted = false;
  SearchOptions options;  // the options in the subject
  std::vector<Finding> findings;
  bool ended = false;  // the search completed

  std::size_t whole_bytes = 0;  // the text after these bytes is damaged
  int lines = 0;                // the number of lines in these bytes
};

// The first line of a journal: `about`, the candidates, the index of the default, and the search
// options that users choose: whether it is exhaustive, the state of L2, and the nominated
// configurations.
base::Json subject_of(base::Json about, std::span<const Trial> trials, std::size_t default_at,
                      bool predicted, const SearchOptions& options);

// The difference between a journal's subject and the subject of a search: "its driver is 13000, not
// 13010". Empty if the search can continue from the journal. It then uses the configurations that
// were nominated when the journal began, because other searches may have found more since.
std::string why_other_subject(const base::Json& stated, const base::Json& wanted);

std::string first_line(const base::Json& subject);
std::string line_of(const Finding& finding);
std::string last_line();

// Returns nothing if the first line is damaged or has another schema; *why has the reason.
std::optional<Journal> decode_journal(std::string_view text, std::string* why);

// The reason why no search, of this build or of a newer one, can continue from a journal with this
// text: the search has ended, the text is damaged, or the kernels had earlier revisions. Empty if a
// search can: the journal may belong to another driver or another problem, or this build may be
// unable to read it.
std::string why_stale(std::string_view text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_JOURNAL_H_
