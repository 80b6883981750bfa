#ifndef ANNULUS_AUTOTUNE_FOLDER_WORK_H_
#define ANNULUS_AUTOTUNE_FOLDER_WORK_H_

// What people do with folders of entries: bring entries in, take them out. Tuning itself stores
// through TunedStore.

#include <string>
#include <vector>

#include "autotune/listing.h"
#include "autotune/tuned_pack.h"
#include "base/files.h"

namespace annulus::autotune {

enum class BroughtIn {
  kAdded,
  kReplaced,  // it is better than what was there for its shape and kernels
  kKept,      // what was there is better, or the same
};

// Writes each entry to its file below `folder`, under the lock of its device's folder; nothing of
// it is checked against a device. outcomes[i] is that of pack[i]. Throws Error{kFile} where the
// folder cannot be written to, Error{kInvalidFile} where a device's identity is none.
std::vector<BroughtIn> bring_in(base::FileSystem& files, const std::string& folder,
                                const Pack& pack);

// Removes a file of a folder that is the caller's own. Throws Error{kFile}.
void remove_file(base::FileSystem& files, const std::string& path);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_FOLDER_WORK_H_
