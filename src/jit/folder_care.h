#ifndef ANNULUS_JIT_FOLDER_CARE_H_
#define ANNULUS_JIT_FOLDER_CARE_H_

// Maintains a folder of compiled kernels: removes kernels that are old or unusable, and finds
// damaged ones. Other files are not touched.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jit/kernel_folders.h"

namespace annulus::jit {

struct PruneRules {
  double older_than_seconds = -1;  // negative: the age does not matter
  // Whether a kernel with this origin stays; null: all stay. A file without an origin never stays.
  std::function<bool(const KernelOrigin&)> keeps;
  std::int64_t max_bytes = -1;  // negative: no limit
  bool dry_run = false;
};

struct Pruned {
  std::int64_t removed = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t left = 0;
  std::int64_t left_bytes = 0;
  std::vector<std::string> problems;  // files that could not be removed
};

// Applies the rules in their order. The last rule removes the oldest kernels. `now` is in seconds
// since 1970.
Pruned prune(const OpenFolder& folder, const PruneRules& rules, std::int64_t now);

struct Damaged {
  std::string name;
  std::string why;
  bool removed = false;
};
struct Verified {
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::vector<Damaged> damaged;  // sorted by name
};
// Reads every file completely.
Verified verify(const OpenFolder& folder, bool remove);

// Reads every file of a folder. Returns KernelKey::wanted of the undamaged kernels, in the order of
// the file names.
std::vector<std::string> wanted_in(const OpenFolder& folder);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_FOLDER_CARE_H_
