#ifndef ANNULUS_TUNED_FOLDER_WORK_H_
#define ANNULUS_TUNED_FOLDER_WORK_H_

// What people do with folders of entries: bring entries in, take them out. Tuning itself stores
// through TunedStore.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "tuned/listing.h"
#include "tuned/tuned_pack.h"

namespace annulus::tuned {

enum class BroughtIn {
  kAdded,
  kReplaced,  // it is better than what was there for its shape and kernels
  kKept,      // what was there is better, or the same
};

// Writes each entry to its file below `folder`, under the lock of its device's folder; nothing of
// it is checked against a device. outcomes[i] is that of pack[i]. Throws Error{kInvalidFile} where
// a device's identity is none, Error{kFile} where the folder cannot be written to, and, before
// anything is written, where a device's folder would hold more than kMaxEntries.
std::vector<BroughtIn> bring_in(base::FileSystem& files, const std::string& folder,
                                const Pack& pack);

// Removes the file of an entry from a device's folder that is the caller's own, under its lock.
// Throws Error{kFile} where it cannot, and where the file's bytes have another digest than
// `contents`: somebody has stored a result since it was looked at.
void remove_file(base::FileSystem& files, const std::string& path, const base::Digest& contents);

// A journal that no search goes on from.
struct StaleJournal {
  std::string path;
  std::string why;      // as why_stale
  std::string problem;  // why it could not be removed; empty where it was, or would be
};

// Removes such journals from a device's folder, under its lock; a dry run removes nothing. A
// journal that a search writes to stays, and so does one that cannot be read. Throws Error{kFile}
// where the folder is not the caller's own or cannot be read.
std::vector<StaleJournal> remove_stale_journals(base::FileSystem& files, const std::string& folder,
                                                bool dry_run);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_FOLDER_WORK_H_
