#ifndef ANNULUS_LAYOUT_ENTRIES_H_
#define ANNULUS_LAYOUT_ENTRIES_H_

// Shared by the readers of other formats: checked counts, and rows whose blocks come in any order.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "annulus/layout.h"
#include "layout/builder.h"

namespace annulus::layout {

// The sizes as a layout without blocks. Throws Error{kInvalidArgument} for sizes out of range.
LayoutView checked(const LayoutSizes& sizes);

// Throws Error{kInvalidArgument} where `given` is not the product; a product that overflows equals
// no count.
void check_count(const char* name, std::size_t given, std::initializer_list<std::int64_t> product);

// The number of entries of an array of a format. Throws Error{kUnsupported} past 2^32 entries.
std::size_t array_size(const char* name, std::initializer_list<std::int64_t> product);

// Collects one row of blocks that a list names in any order.
class Entries {
 public:
  // `name` is the list's, for messages.
  Entries(const char* name, std::int64_t columns) : name_(name), columns_(columns) {}

  // `index` is the entry's index in the list, for messages. Throws Error{kInvalidArgument} for a
  // column out of range.
  void add(std::int64_t column, Block block, std::int64_t index);

  // Sorts and writes the row and begins another. Throws Error{kInvalidArgument} where a column
  // occurs twice.
  void finish(Builder* builder);

 private:
  struct Entry {
    std::int64_t column = 0;
    std::int64_t index = 0;
    Block block = Block::kFull;
  };
  const char* name_;
  std::int64_t columns_;
  std::vector<Entry> row_;
};

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_ENTRIES_H_
