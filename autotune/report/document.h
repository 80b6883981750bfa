#ifndef ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_
#define ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_

// The document of a report: JSON of each search, of the results without a journal, and of
// everything that was left out (docs/tuning.md lists its members). The same files give the same
// document.

#include <string>
#include <vector>

#include "autotune/report/gather.h"
#include "base/files.h"

namespace annulus::autotune::report {

// Must be raised if a member changes its meaning.
inline constexpr int kDocumentSchema = 1;

struct Document {
  std::string json;  // the document, in ASCII
  int searches = 0;
  int entries = 0;  // the number of results without a journal
  std::vector<std::string> left_out;
};

// The limits of a document. A search or a result that exceeds a limit is left out, with a line in
// left_out.
struct DocumentLimits {
  std::size_t searches = 1000;
  std::size_t entries = 2000;
  // The size without the list of what was left out, which has at most 200 lines and 1 MiB.
  std::size_t bytes = std::size_t{63} << 20;
  // The limit of work: bytes of journals that are read, plus their replay_steps(). It is not a
  // time, so that the same files give the same document. It takes a minute or two.
  std::int64_t work = 2'000'000'000;
};

// Reads the journals one after another. Holds the text of the document and one search in memory.
// Throws as gather() does if a named journal cannot be read or is invalid.
Document document_of(base::FileSystem& files, Gathered gathered, const DocumentLimits& limits = {});

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_DOCUMENT_H_
