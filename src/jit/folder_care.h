#ifndef ANNULUS_JIT_FOLDER_CARE_H_
#define ANNULUS_JIT_FOLDER_CARE_H_

// Takes care of a folder of compiled kernels: removes those that are old or serve nobody, and finds
// those that are damaged. Other files are left alone.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jit/kernel_folders.h"

namespace annulus::jit {

struct PruneRules {
  double older_than_seconds = -1;  // negative: whatever their age
  // Whether a kernel of an origin stays; null: all do. A file without an origin never does.
  std::function<bool(const KernelOrigin&)> keeps;
  std::int64_t max_bytes = -1;  // negative: however many
  bool dry_run = false;
};

struct Pruned {
  std::int64_t removed = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t left = 0;
  std::int64_t left_bytes = 0;
  std::vector<std::string> problems;  // files that could not be removed
};

// Applies the rules in their order; the last removes the oldest. `now` is in seconds since 1970.
Pruned prune(const OpenFolder& folder, const PruneRules& rules, std::int64_t now);

struct Damaged {
  std::string name;
  std::string why;
  bool removed = false;
};
struct Verified {
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::vector<Damaged> damaged;  // in the order of names
};
// Reads every file whole.
Verified verify(const OpenFolder& folder, bool remove);

// Reads every file of a folder and returns, in the order of names, KernelKey::wanted of those that
// are whole: what they are kernels for.
std::vector<std::string> wanted_in(const OpenFolder& folder);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_FOLDER_CARE_H_
