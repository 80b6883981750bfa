#ifndef ANNULUS_TUNED_JOURNAL_H_
#define ANNULUS_TUNED_JOURNAL_H_

// What a search has found out so far, line by line, so that a search whose process was killed goes
// on where it was, and so that anybody can follow its decisions without the device. A search is a
// function of its candidates and of what its workbench answers; a journal holds both:
//
//   annulus-journal 2 <32 hex digits> {"device":"...", ..., "candidates":[["mma m64 ...",1234.5],...]}
//   <32 hex digits> {"dropped":"mma m64 ...","why":"spills"}
//   <32 hex digits> {"tried":["mma m64 ...","mma m128 ..."],"times":[[10.5,...],[9.75,...]],"cold":false}
//   <32 hex digits> {"ended":true}
//
// The digits are the XXH3-128 of the text between them and the end of the line. A line is added
// once a candidate was dropped or measured, so a process that is killed loses the candidate under
// way and nothing else. The first line that is damaged, or that no search writes, and what follows
// it are not used.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuned/entry.h"
#include "tuned/trial.h"

namespace annulus::tuned {

// Raise the schema when a member changes its meaning.
inline constexpr int kJournalSchema = 2;
inline constexpr std::string_view kJournalSuffix = ".journal";
inline constexpr std::int64_t kMaxJournalBytes = 64 << 20;

// One answer of a workbench.
struct Finding {
  std::vector<std::string> configs;        // as to_string() writes them; one where it was dropped
  std::optional<std::string> dropped;      // why
  std::vector<std::vector<double>> times;  // as Workbench::measure gives them; empty where dropped
  CacheState l2 = CacheState::kWarm;       // that they are of
};

struct Journal {
  base::Json subject;         // of its first line: all that the answers depend on
  std::vector<Trial> trials;  // the candidates of the subject, none of them tried
  std::size_t default_at = 0;
  bool predicted = false;
  SearchOptions options;  // those of the subject
  std::vector<Finding> findings;
  bool ended = false;  // the search ended by itself

  std::size_t whole_bytes = 0;  // what follows them is damaged
  int lines = 0;                // in those bytes
};

// The first line of a journal: `about` with the candidates, the default's place among them, and
// what of the search's options people choose: whether it is exhaustive, L2, and who was nominated.
base::Json subject_of(base::Json about, std::span<const Trial> trials, std::size_t default_at,
                      bool predicted, const SearchOptions& options);

// Says in what a journal's subject is not that of a search: "its driver is 13000, not 13010". Empty
// where the search can go on from the journal. It then goes on with those that were nominated when
// the journal began, as other searches may have found more since.
std::string why_other_subject(const base::Json& stated, const base::Json& wanted);

std::string first_line(const base::Json& subject);
std::string line_of(const Finding& finding);
std::string last_line();

// Empty, with *why saying the reason, where the first line is damaged or of another schema.
std::optional<Journal> decode_journal(std::string_view text, std::string* why);

// Why no search goes on from a journal whose text this is, neither of this build nor of a newer
// one: the search has ended, the text is damaged, or families of kernels had earlier revisions.
// Empty where one may: another driver's, another problem's, or one that this build cannot read.
std::string why_stale(std::string_view text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_JOURNAL_H_
