#ifndef ANNULUS_TUNED_FOLDER_WORK_H_
#define ANNULUS_TUNED_FOLDER_WORK_H_

// Functions for users who manage folders of entries: import entries and remove them. Tuning itself
// stores entries through TunedStore.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "tuned/listing.h"
#include "tuned/tuned_pack.h"

namespace annulus::tuned {

enum class BroughtIn {
  kAdded,
  kReplaced,  // it is better than the existing entry for its shape and kernels
  kKept,      // the existing entry is better, or equal
};

// Writes each entry to its file below `folder`, under the lock of its device's folder. Nothing is
// checked against a device. outcomes[i] belongs to pack[i]. Throws Error{kInvalidFile} if a
// device's identity is invalid, and Error{kFile} if the folder cannot be written to. Throws
// Error{kFile} before anything is written if a device's folder would hold more than kMaxEntries.
std::vector<BroughtIn> bring_in(base::FileSystem& files, const std::string& folder,
                                const Pack& pack);

// Removes the file of an entry from a device's folder that the caller owns, under the folder's
// lock. Throws Error{kFile} if that fails, or if the digest of the file's bytes is not `contents`:
// then a result was stored after the caller read the file.
void remove_file(base::FileSystem& files, const std::string& path, const base::Digest& contents);

// A journal from which no search can continue.
struct StaleJournal {
  std::string path;
  std::string why;  // the result of why_stale()
  // the reason why it could not be removed; empty if it was removed, or would be
  std::string problem;
};

// Removes such journals from a device's folder, under the folder's lock. A dry run removes nothing.
// A journal that a search is writing stays, and so does a journal that cannot be read. Throws
// Error{kFile} if the caller does not own the folder, or if it cannot be read.
std::vector<StaleJournal> remove_stale_journals(base::FileSystem& files, const std::string& folder,
                                                bool dry_run);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_FOLDER_WORK_H_
