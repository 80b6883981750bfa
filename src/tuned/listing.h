#ifndef ANNULUS_TUNED_LISTING_H_
#define ANNULUS_TUNED_LISTING_H_

// Lists everything on a search path, for all devices, for people. Plans look results up through
// TunedStore.

#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "tuned/entry.h"

namespace annulus::tuned {

struct ListedEntry {
  std::string path;    // of its file, or of its pack
  std::string name;    // entry_name(): that of its file, without the ending
  std::string device;  // identity, as the file states it
  Entry entry;
  bool packed = false;    // in a pack, with others
  base::Digest contents;  // of its file's bytes, where it has a file of its own
};

// A file in an entry's place that holds none which this build reads.
struct Stray {
  std::string path;
  std::string why;
  // Whether no newer build reads it either: it is damaged, of an earlier schema, or has a name that
  // is not its own. A file that could not be read may be anything.
  bool useless = false;
  base::Digest contents;  // of its bytes, where it could be read
};

struct Listing {
  std::vector<ListedEntry> entries;    // in the order of the path, then of names; packs come last
  std::vector<std::string> ignored;    // one line for each file or folder that is not used
  std::vector<Stray> strays;           // those of them that are files of single entries
  std::vector<std::string> journaled;  // paths of the devices' folders in which journals are
};

// What is done about a device's folder with more than kMaxEntries.
enum class Crowded {
  kIgnored,  // as stores do
  kListed,
};

// `places` are folders and packs, as in StoreOptions::folders.
Listing list_entries(base::FileSystem& files, const std::vector<std::string>& places,
                     Crowded crowded = Crowded::kIgnored);

// The entries of packs, which are read wherever they are and whoever may write to them: people name
// them. Throws Error{kFile}, and as decode_pack, each with the file's path.
Listing read_packs(base::FileSystem& files, const std::vector<std::string>& paths);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_LISTING_H_
