#ifndef ANNULUS_TUNED_ENTRY_INDEX_H_
#define ANNULUS_TUNED_ENTRY_INDEX_H_

// Entries in memory. A lookup by shape takes less than a microsecond for any number of entries.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuned/entry.h"

namespace annulus::tuned {

// An entry and its source.
struct Kept {
  Entry entry;
  std::string path;  // the path of its file or pack; empty if there is no file
  // Position on the search path. Of two entries for one shape, the entry with the lower position
  // stays.
  int place = 0;
  // the name of the device that the entry is for, if that device is a relative
  std::string relative = {};
};

// Not thread-safe.
class EntryIndex {
 public:
  // If entries at one position are equally complete, an entry with the same major version of the
  // driver is preferred.
  explicit EntryIndex(int driver_version = 0) : driver_(driver_version / 1000) {}

  // Adds an entry, unless a better one for its shape exists. Better is, in this order: an earlier
  // position, a complete search, the same driver, better().
  void put(Kept kept);
  // Adds an entry, and replaces the one that exists for its shape.
  void replace(Kept kept);
  void erase(const ShapeKey& shape);
  bool empty() const { return kinds_.empty(); }

  // The entry with this key, or null. Pointers are valid until the index is changed.
  const Kept* exact(const ShapeKey& shape) const;

  struct Near {
    const Kept* kept = nullptr;  // null if there is none
    int distance = 0;            // the length_distance() to the entry
  };
  // The nearest entry in length within kMaxDistance. The order is: smaller distance, nearer number
  // of queries, longer problem.
  Near nearest(const ShapeKey& shape) const;

  // The best configurations for other problems with the same head dims and dtype: winners and
  // runners-up, the most similar problems first, each configuration once, at most `most`.
  std::vector<attention::KernelConfig> winners(const ShapeKey& shape, std::size_t most) const;

 private:
  // Entries that differ only in lengths, ordered by queries, then by keys.
  struct Slot {
    int queries = 0;
    int keys = 0;
    std::unique_ptr<Kept> kept;
  };
  using Kind = std::vector<Slot>;
  static ShapeKey kind_of(ShapeKey shape);
  static Kind::const_iterator first_from(const Kind& kind, int queries, int keys);
  bool goes_first(const Kept& a, const Kept& b) const;

  int driver_;
  std::map<ShapeKey, Kind> kinds_;  // [key without lengths]; no Kind is empty
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_ENTRY_INDEX_H_
