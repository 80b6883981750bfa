#include "pattern/leaves/mask_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "base/join.h"

namespace annulus::pattern::leaves {
namespace {

// The bound of positions and numbers on the device, with which differences do not overflow 32 bits.
constexpr std::int64_t kMaxDevice = std::int64_t{1} << 30;
// Up to this many comparisons are worth writing out for each element of a tile.
constexpr int kMaxWrittenOut = 8;

std::int32_t narrow(const char* what, std::int64_t value) {
  if (value < -kMaxDevice || value > kMaxDevice) {
    base::fail(ErrorCode::kUnsupported,
               "{} is {}; on a device positions and numbers are within +-2^30", what, value);
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace

std::size_t MaskWriter::slot(const char* what, std::int64_t value) {
  numbers_.push_back(narrow(what, value));
  return numbers_.size() - 1;
}

std::pair<std::size_t, std::size_t> MaskWriter::list_slots(const char* what,
                                                           const std::vector<std::int64_t>& list) {
  const std::size_t offset = slot("a list's offset", static_cast<std::int64_t>(lists_.size()));
  offset_slots_.push_back(offset);
  for (const std::int64_t value : list) lists_.push_back(narrow(what, value));
  return {offset, slot("a list's length", static_cast<std::int64_t>(list.size()))};
}

Piece MaskWriter::call(const DeviceFunction& function, std::initializer_list<std::size_t> slots) {
  is_long_ = is_long_ || function.is_long;
  return {fmt::format("m.{}({}{}q, k)", function.name, base::join(slots, ", "),
                      slots.size() > 0 ? ", " : "")};
}

Piece MaskWriter::blocks(const std::shared_ptr<const BlockLayout>& layout, std::string_view name) {
  if (code_.layout != nullptr && code_.layout != layout && !(*code_.layout == *layout)) {
    base::fail(ErrorCode::kUnsupported,
               "the expression has two different layouts ({} and another); a kernel reads one: "
               "combine them beforehand",
               name);
  }
  code_.layout = layout;
  return {"m.blocks(q, k)"};
}

MaskCode MaskWriter::finish(std::string text) {
  code_.text = std::move(text);
  code_.uses_blocks = code_.text.find("m.blocks(") != std::string::npos;
  // A blocks() that decides nothing is left out of the text, and then no layout is needed.
  if (!code_.uses_blocks) code_.layout = nullptr;
  // The slot of a number depends only on the structure, so equal structures share a kernel; where a
  // list begins depends on the values.
  const std::size_t spilled = numbers_.size() - std::min(numbers_.size(), room_);
  for (const std::size_t slot : offset_slots_) {
    numbers_[slot] = narrow("a list's offset", numbers_[slot] + static_cast<std::int64_t>(spilled));
  }
  for (std::size_t slot = 0; slot < numbers_.size(); ++slot) {
    (slot < room_ ? code_.numbers : code_.lists)
        .push_back(static_cast<std::int32_t>(numbers_[slot]));
  }
  code_.lists.insert(code_.lists.end(), lists_.begin(), lists_.end());
  code_.costly = code_.uses_blocks || is_long_ || leaves_ > kMaxWrittenOut;
  return std::move(code_);
}

}  // namespace annulus::pattern::leaves
