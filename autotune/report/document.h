#ifndef ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_
#define ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_

// The document of a report: JSON of each search, of the results without a journal, and of what was
// left out (docs/tuning.md has its members). The same files make the same document.

#include <string>
#include <vector>

#include "autotune/report/gather.h"
#include "base/files.h"

namespace annulus::autotune::report {

// Raise the schema when a member changes its meaning.
inline constexpr int kDocumentSchema = 1;

struct Document {
  std::string json;  // ASCII
  int searches = 0;
  int entries = 0;  // results without a journal
  std::vector<std::string> left_out;
};

// The bounds of a document. A search or a result without room is left out, with a line in left_out.
struct DocumentLimits {
  std::size_t searches = 1000;
  std::size_t entries = 2000;
  // All but the list of what was left out, which has at most 200 lines and 1 MiB.
  std::size_t bytes = std::size_t{63} << 20;
  // Bytes of journals that are read, and replay_steps() of these. No clock, so that the same files
  // make the same document; it takes a minute or two.
  std::int64_t work = 2'000'000'000;
};

// Reads the journals, one after another, and holds the text of the document and one search. Throws
// if a named journal cannot be read or is none, as gather().
Document document_of(base::FileSystem& files, Gathered gathered, const DocumentLimits& limits = {});

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_
