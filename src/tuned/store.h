#ifndef ANNULUS_TUNED_STORE_H_
#define ANNULUS_TUNED_STORE_H_

// Tuned results on disk, for one device. Each folder of a search path holds a folder named after
// the device, with one file for each shape, and perhaps packs, which may also stand in the path
// themselves (docs/tuning.md). Earlier places of the path go before later ones: the user's before
// the site's, and both before results that were shipped. In a folder single files go before packs.
//
// Nothing here can make an answer wrong: an entry selects among configurations that are legal
// anyway. Nothing here can make a plan fail: a file that is damaged, foreign, old or outside the
// space is ignored with one line in the log. Folders are read once and then from memory; all
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
  std::vector<std::string> shipped;  // folders behind them, which are only read
  DeviceKey device;
  int driver_version = 0;          // 13000 is 13.0: results of this one go before others
  attention::DeviceLimits limits;  // an entry's configuration must fit these
  std::chrono::milliseconds lock_wait = kLockWait;
};

class TunedStore {
 public:
  // Touches no file yet. `files` null: the real file system.
  explicit TunedStore(StoreOptions options, base::Log log = {},
                      std::shared_ptr<base::FileSystem> files = nullptr);

  struct Found {
    Entry entry;
    std::string path;           // of its file or pack
    int distance = 0;           // 0: the entry has the same key; else its length_distance()
    std::string relative = {};  // the device that it was measured on, where that is a relative
  };
  // The entry with the same key, else the nearest one in length (EntryIndex::nearest); where this
  // device has neither, those of its relatives, which the caller has to check
  // (planner/choices.h).
  std::optional<Found> find(const ShapeKey& shape);
  // Only the entry of this device with the same key.
  std::optional<Found> find_exact(const ShapeKey& shape);
  // What a search for a problem of this key is to try first: EntryIndex::winners, of this device
  // and then of its relatives.
  std::vector<attention::KernelConfig> winners(const ShapeKey& shape, std::size_t most);
  // Treats the entry as absent for as long as this store lives. Called where its kernel does not
  // work.
  void forget(const Found& found);
  // Whether the folders have been read, so that no look-up makes a file call.
  bool is_loaded() const { return loaded_.load(std::memory_order_acquire); }
  // True without entries: the caller then need not make a key, which takes time.
  bool empty();

  // The folder that store() would write to, which is made; empty, with *problem saying why, where
  // no folder of the path can be written to.
  std::optional<std::string> writable_folder(std::string* problem);

  enum class Outcome {
    kStored,
    kKept,    // a better entry for the shape existed
    kFailed,  // not written, but kept in this store's memory
  };
  struct Stored {
    Outcome outcome = Outcome::kFailed;
    std::string path;     // of the entry that is stored now
    std::string problem;  // of kFailed, as are the next two
    // The file that was not written, for somebody else to put below a folder of the path: its name
    // there, and its text.
    std::string file_name;
    std::string file;
  };
  // Writes to the first folder of the path that takes it. With `replace` a better entry is replaced
  // as well. `make_room` is called at most once, where a disk or the user's share of it is full,
  // and then all is tried again.
  Stored store(const Entry& entry, bool replace, const std::function<void()>& make_room = {});

  // Why an entry, of this device or of a relative, is not used here: it is outdated, or its
  // configuration is not legal or is withheld. Empty if it is used.
  std::string why_not(const Entry& entry) const;

  const StoreOptions& options() const { return options_; }

 private:
  // Why the configuration of an entry is withheld here; empty if it is not.
  std::string why_withheld(const Entry& entry) const;
  // Whether the user should be warned that an entry is not used. Entries of another revision of the
  // kernels, and of kernels that are withheld, are no fault of anybody's.
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
  std::mutex writing_;  // held by the one thread that stores; taken before mutex_
  std::mutex reading_;  // held by the thread that reads the folders; taken before mutex_
  std::atomic<bool> loaded_{false};
  std::mutex mutex_;  // guards all below, once they are loaded
  EntryIndex own_;
  EntryIndex relatives_;
};

// Whether an element of a search path is a pack rather than a folder.
bool is_pack(const std::string& path);
// The folder that a path's last part is in: "/" for "/a", empty for "a".
std::string folder_of(const std::string& path);

// The places of a search path, ':' between them.
std::vector<std::string> split_path(const std::string& text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_STORE_H_
