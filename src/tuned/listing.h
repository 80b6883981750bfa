#ifndef ANNULUS_TUNED_LISTING_H_
#define ANNULUS_TUNED_LISTING_H_

// Lists everything on a search path, for all devices, for users. Plans look results up through
// TunedStore.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "tuned/entry.h"

namespace annulus::tuned {

struct ListedEntry {
  std::string path;    // the path of its file, or of its pack
  std::string name;    // entry_name(); the name of its file without the suffix
  std::string device;  // the identity that the file states
  Entry entry;
  bool packed = false;    // whether it is in a pack with other entries
  base::Digest contents;  // the digest of its file, if it has its own file
};

// A file with the name of an entry that this build cannot read.
struct Stray {
  std::string path;
  std::string why;
  // Whether no newer build can read it either: it is damaged, has an earlier schema, or has the
  // wrong name. False if the file could not be read, because then its contents are unknown.
  bool useless = false;
  base::Digest contents;  // the digest of its bytes, if they could be read
};

struct Listing {
  std::vector<ListedEntry> entries;    // in the order of the path, then of names; packs come last
  std::vector<std::string> ignored;    // one line for each file or folder that is not used
  std::vector<Stray> strays;           // the ignored files that are named as single entries
  std::vector<std::string> journaled;  // paths of the devices' folders that contain journals
};

// How a device's folder with more than kMaxEntries is treated.
enum class Crowded {
  kIgnored,  // the folder is ignored, as a store does
  kListed,
};

// `places` are folders and packs, as in StoreOptions::folders.
Listing list_entries(base::FileSystem& files, const std::vector<std::string>& places,
                     Crowded crowded = Crowded::kIgnored);

// The entries of packs that a user names. The packs are read wherever they are, even if other users
// may write to them. Throws Error{kFile}, and as decode_pack() does, each with the file's path.
Listing read_packs(base::FileSystem& files, const std::vector<std::string>& paths);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_LISTING_H_
