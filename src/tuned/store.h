#ifndef ANNULUS_TUNED_STORE_H_
#define ANNULUS_TUNED_STORE_H_

// Tuned results on disk, for one device. Each folder of a search path contains a folder named after
// the device, with one file for each shape. It may also contain packs. A pack may also be an
// element of the search path (docs/tuning.md). Earlier elements of the path have precedence: the
// user's over the site's, and both over results that were shipped. Within a folder, single files
// have precedence over packs.
//
// No file can make a result of attention wrong: an entry selects among configurations that are
// legal anyway. No file can make a plan fail: a file that is damaged, foreign, old or outside the
// space is ignored with one line in the log. Folders are read once; later lookups use memory. All
// functions may be called from any thread, and any number of processes may write to one folder.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attention/plan/plan.h"
#include "base/files.h"
#include "base/log.h"
#include "tuned/device_key.h"
#include "tuned/entry.h"
#include "tuned/entry_index.h"
#include "tuned/opened.h"

namespace annulus::tuned {

struct StoreOptions {
  std::vector<std::string> folders;  // the search path: folders, and files that end in ".pack"
  std::vector<std::string> shipped;  // folders that come after the search path and are only read
  DeviceKey device;
  int driver_version = 0;          // 13000 is 13.0; results of this version are preferred
  attention::DeviceLimits limits;  // the limits that an entry's configuration must satisfy
  std::chrono::milliseconds lock_wait = kLockWait;
};

class TunedStore {
 public:
  // Does not access files yet. If `files` is null, the real file system is used.
  explicit TunedStore(StoreOptions options, base::Log log = {},
                      std::shared_ptr<base::FileSystem> files = nullptr);

  struct Found {
    Entry entry;
    std::string path;           // the path of its file or pack
    int distance = 0;           // 0 if the entry has the same key, else its length_distance()
    std::string relative = {};  // the device that it was measured on, if that is a relative
  };
  // The entry with the same key, else the entry that is nearest in length (EntryIndex::nearest). If
  // this device has neither, the entries of its relatives are searched. The caller has to check
  // such an entry (planner/choices.h).
  std::optional<Found> find(const ShapeKey& shape);
  // Finds only an entry of this device with the same key.
  std::optional<Found> find_exact(const ShapeKey& shape);
  // The configurations that a search for a problem with this key tries first: EntryIndex::winners
  // of this device, then of its relatives.
  std::vector<attention::KernelConfig> winners(const ShapeKey& shape, std::size_t most);
  // Treats the entry as absent for the lifetime of this store. Called if its kernel does not work.
  void forget(const Found& found);
  // Whether the folders have been read, so that lookups access no files.
  bool is_loaded() const { return loaded_.load(std::memory_order_acquire); }
  // True if there are no entries. Then the caller need not compute a key, which takes time.
  bool empty();

  // The folder that store() would write to. It is created if necessary. No value if no folder of
  // the path can be written to; then *problem has the reason.
  std::optional<std::string> writable_folder(std::string* problem);

  enum class Outcome {
    kStored,
    kKept,    // a better entry for the shape exists
    kFailed,  // not written, but stored in this store's memory
  };
  struct Stored {
    Outcome outcome = Outcome::kFailed;
    std::string path;     // the path of the entry that is now stored
    std::string problem;  // set only for kFailed, like the next two members
    // The file that was not written, so that a user can put it below a folder of the path: its name
    // there, and its text.
    std::string file_name;
    std::string file;
  };
  // Writes to the first folder of the path where that succeeds. With `replace`, it also replaces a
  // better entry. `make_room` is called at most once, if a disk or the user's quota is full. Then
  // everything is tried again.
  Stored store(const Entry& entry, bool replace, const std::function<void()>& make_room = {});

  // The reason why an entry, of this device or of a relative, is not used here: it is outdated, or
  // its configuration is illegal or withheld. Empty if it is used.
  std::string why_not(const Entry& entry) const;

  const StoreOptions& options() const { return options_; }

 private:
  // The reason why the configuration of an entry is withheld here. Empty if it is not.
  std::string why_withheld(const Entry& entry) const;
  // Whether the user should be warned that an entry is not used. Entries for another revision of
  // the kernels, and for withheld kernels, need no warning.
  bool is_fault(const Entry& entry) const;
  void load();
  void load_place(const std::string& path, int place);
  void load_folder(const std::string& folder, int place);
  void load_entries(const std::string& path, int place, bool of_relatives);
  void load_pack(int folder, const std::string& path, const std::string& name, int place);
  int open_for_reading(const std::string& path);
  std::optional<Entry> read_entry(int folder, const std::string& path, const std::string& name,
                                  bool quiet, std::string* device);
  std::optional<Entry> read_stored(int folder, const Entry& entry, std::vector<std::string>* names,
                                   bool* fits) const;
  std::optional<Stored> store_in(const std::string& folder, const Entry& entry, bool replace,
                                 Entry* stored_entry, std::string* problem, bool* is_full);

  StoreOptions options_;
  base::Log log_;
  std::shared_ptr<base::FileSystem> files_;
  std::mutex writing_;  // held by the one thread that stores; acquired before mutex_
  std::mutex reading_;  // held by the thread that reads the folders; acquired before mutex_
  std::atomic<bool> loaded_{false};
  std::mutex mutex_;  // guards all members below after the folders were read
  EntryIndex own_;
  EntryIndex relatives_;
};

// Whether an element of a search path is a pack rather than a folder.
bool is_pack(const std::string& path);
// The folder that contains a path's last part: "/" for "/a", empty for "a".
std::string folder_of(const std::string& path);

// The elements of a search path, which are separated by ':'.
std::vector<std::string> split_path(const std::string& text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_STORE_H_
