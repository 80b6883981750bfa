#ifndef ANNULUS_LAYOUT_ENTRIES_H_
#define ANNULUS_LAYOUT_ENTRIES_H_

// Code that the readers of other formats share: checked counts, and rows whose blocks come in any
// order.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "annulus/layout.h"
#include "layout/builder.h"

namespace annulus::layout {

// A layout with these sizes and no blocks. Throws Error{kInvalidArgument} for sizes out of range.
LayoutView checked(const LayoutSizes& sizes);

// Throws Error{kInvalidArgument} if `given` is not the product. A product that overflows equals no
// count.
void check_count(const char* name, std::size_t given, std::initializer_list<std::int64_t> product);

// The number of entries of an array of a format. Throws Error{kUnsupported} for more than 2^32
// entries.
std::size_t array_size(const char* name, std::initializer_list<std::int64_t> product);

// Collects one row of blocks, which a list has in any order.
class Entries {
 public:
  // `name` is the name of the list, for messages.
  Entries(const char* name, std::int64_t columns) : name_(name), columns_(columns) {}

  // `index` is the entry's index in the list, for messages. Throws Error{kInvalidArgument} for a
  // column out of range.
  void add(std::int64_t column, Block block, std::int64_t index);

  // Sorts and writes the row, and begins another. Throws Error{kInvalidArgument} if a column occurs
  // twice.
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
