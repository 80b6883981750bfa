#ifndef ANNULUS_TUNED_PACK_H_
#define ANNULUS_TUNED_PACK_H_

// Tuned results that travel: many of them in one text file, a pack, which can be compared, merged,
// checked on another machine and shipped (docs/tuning.md):
//
//   export_tuned("fleet.pack");                          what this machine has found
//   merge_tuned({"a.pack", "b.pack"}, "fleet.pack");     in any order, as often as one likes
//   TunedVerifyOptions options;
//   options.packs = {"fleet.pack"};
//   options.measure = 3;                                 // so many are measured again
//   verify_tuned(device, options);
//
// A pack is used where it lies: in DeviceOptions::tuned_path, in a folder of that path, or in
// share/annulus/tuned of the installation. Paths of packs here may be relative; packs that are
// named are read wherever they are, whoever may write to them. All functions may be called from any
// thread, and by several processes on one folder. They throw Error{kFile} where a file cannot be
// read or written, Error{kInvalidFile} where a pack that is named is none, was cut or changed,
// Error{kUnsupported} where it is of another schema: that of a newer library, it then says.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/selection.h"
#include "annulus/tune.h"

namespace annulus::inline v0 {

// A verdict says what became of an entry, or what is found of it.
enum class TunedVerdict : int {
  // export_tuned, import_tuned, merge_tuned
  kAdded = 0,
  kReplaced = 1,  // an entry for the same problems and kernels, than which it is better
  kKept = 2,      // the one that was there is better, or the same
  // diff_tuned
  kFirstOnly = 3,
  kSecondOnly = 4,
  kDiffers = 5,  // the text says in what
  // verify_tuned, why_tuned
  kUsed = 6,    // plans for such problems use it
  kUnused = 7,  // for the reason in the text
  // verify_tuned, of what was measured again
  kHolds = 8,   // faster than the heuristic's choice, beyond the noise, or that choice itself
  kWeaker = 9,  // not slower, but not faster beyond the noise either
  kFails = 10,  // slower than the heuristic's choice beyond the noise, or its kernel does not work
  kNotMeasured = 11,  // could not be measured here, for the reason in the text
  // prune_tuned, remove_tuned
  kRemoved = 12,  // or would be, in a dry run
};
// "added", "replaced", "kept", "first only", "second only", "differs", "used", "not used", "holds",
// "weaker", "fails", "not measured", "removed".
ANNULUS_EXPORT const char* to_string(TunedVerdict verdict);

// An entry and what is said of it.
struct TunedNote {
  TunedEntry entry;  // of a file that holds none: its path alone
  TunedVerdict verdict = TunedVerdict::kUsed;
  std::string text;
};

struct TunedReport {
  std::vector<TunedNote> notes;
  std::vector<std::string>
      left_out;  // files, folders and lines of packs that hold no entry, and why

  // why_tuned alone fills these: the kind of the problem, the configuration that a plan has, and
  // why.
  std::string shape;
  std::string config;
  std::string reason;
};

// Which entries are meant: those that have all that is asked for.
struct TunedFilter {
  std::string name;            // part of TunedEntry::name or path; empty: any
  std::string device;          // part of TunedEntry::device; empty: any
  bool measured_only = false;  // no predictions
  bool complete_only = false;  // none of a search that was cut short
};

// Writes the entries of a search path to a pack, which is replaced where it exists: packs of the
// path too, without what was installed with the library. Not given: the default path. Throws
// Error{kInvalidArgument}, and writes nothing, if no entry is meant, or if the pack would be larger
// than 64 MiB, which is the most that is read.
ANNULUS_EXPORT TunedReport export_tuned(const std::string& pack, const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Writes the entries of packs to the first folder of a search path that takes them, whatever
// devices they are of; a better entry that is there stays. To use a pack, putting it into a folder
// of the path is enough: this is for folders that are tuned in as well. A folder in which a device
// would have more than 10000 entries, the most that is read, takes none.
ANNULUS_EXPORT TunedReport import_tuned(const std::vector<std::string>& packs,
                                        const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Writes all entries of some packs to one. Of two for the same device, problems and kernels one
// stays: a complete search before one that was cut short, then the surer gain, then a fixed order.
// So the result does not depend on the order of the packs, and merging it again changes nothing.
// Throws Error{kInvalidArgument} as export_tuned.
ANNULUS_EXPORT TunedReport merge_tuned(const std::vector<std::string>& packs,
                                       const std::string& to);

// In what two packs, or search paths, differ. A pack's name ends in ".pack". Throws Error{kFile}
// where nothing is at a path, or at none of the places of a search path.
ANNULUS_EXPORT TunedReport diff_tuned(const std::string& first, const std::string& second);

struct TunedVerifyOptions {
  std::vector<std::string> packs;  // none: what the device's search path holds
  // So many of the entries that serve the device are measured again beside the heuristic's choice,
  // as tune() does, spread over all; 0: none. On a simulated device times are predicted.
  int measure = 0;
  std::uint64_t seed = 0;  // of the operands and of which entries are taken
  // Ends measuring soon after it turns true. Must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TunedNote&)> progress;  // after each that was measured
};

// Whether entries serve a device, and why not where they do not: another chip, another revision of
// the kernels, a configuration that is not legal here. Throws as tune() too, where it measures.
ANNULUS_EXPORT TunedReport verify_tuned(const Device& device,
                                        const TunedVerifyOptions& options = {});

// Removes files of a search path that no plan of this build or a newer one uses: those of earlier
// revisions of the kernels, of earlier schemas, damaged ones. With `device_key`
// (DeviceInfo::tuned_key) also those of other devices, relatives apart. Journals that no search
// goes on from are removed too: of searches that have ended, of earlier revisions, damaged ones.
// What may be a newer build's, what could not be read and what was written meanwhile stays. Packs
// are left as they are.
ANNULUS_EXPORT TunedReport prune_tuned(const std::optional<std::string>& tuned_path = {},
                                       const std::optional<std::string>& device_key = {},
                                       bool dry_run = false);

// Removes the one file whose entry has `name` in its name or path. Throws Error{kInvalidArgument}
// where none or several have, or where it is in a pack; Error{kFile} too where the file has changed
// since it was looked at.
ANNULUS_EXPORT TunedReport remove_tuned(const std::string& name,
                                        const std::optional<std::string>& tuned_path = {},
                                        bool dry_run = false);

// Which entry a plan of this problem uses on a device, and of each other one of the device's search
// path why it does not, those first that come nearest. Throws as Device::plan.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem);
// The same for a plan with a selection. Throws as Device::plan with it.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem,
                                     const Selection& selection);
// The same for a batch, each class of whose requests has an entry of its own: the texts of the
// report are those of all classes, "; " between them and ", " between configurations. Throws as
// plan_batch.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const BatchProblem& problem,
                                     const BatchOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_TUNED_PACK_H_
