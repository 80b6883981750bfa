#include "pattern/leaves/mask_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/huge_pages.h"
#include "base/work.h"
#include "pattern/leaves/leaves.h"

namespace annulus::pattern::leaves {
namespace {

// The bound of positions and numbers on the device. It keeps differences within 32 bits.
constexpr std::int64_t kMaxDevice = std::int64_t{1} << 30;

}  // namespace

std::int32_t device_number(const char* what, std::int64_t value) {
  if (value < -kMaxDevice || value > kMaxDevice) {
    base::fail(ErrorCode::kUnsupported,
               "{} is {}; on a device positions and numbers are within +-2^30", what, value);
  }
  return static_cast<std::int32_t>(value);
}

std::size_t MaskWriter::slot(const char* what, std::int64_t value) {
  numbers_.push_back({device_number(what, value), false});
  return numbers_.size() - 1;
}

std::pair<std::size_t, std::size_t> MaskWriter::list_slots(const char* what,
                                                           const std::vector<std::int64_t>& list) {
  const std::size_t offset = slot("a list's offset", std::ssize(lists_));
  numbers_[offset].is_offset = true;
  base::charge(std::ssize(list) / 2);
  for (const std::int64_t value : list) lists_.push_back(device_number(what, value));
  return {offset, slot("a list's length", std::ssize(list))};
}

std::pair<std::size_t, std::size_t> MaskWriter::list_slots(
    const char* what, std::int64_t length,
    const std::function<const std::vector<std::int64_t>&()>& next) {
  const std::size_t offset = slot("a list's offset", std::ssize(lists_));
  numbers_[offset].is_offset = true;
  const auto end = lists_.size() + static_cast<std::size_t>(length);
  base::reserve_huge(&lists_, end);
  while (lists_.size() < end) {
    const std::vector<std::int64_t>& part = next();
    base::charge(std::ssize(part) / 2);
    for (const std::int64_t value : part) lists_.push_back(device_number(what, value));
  }
  return {offset, slot("a list's length", length)};
}

Piece MaskWriter::call(const DeviceFunction& function, std::initializer_list<std::size_t> slots) {
  std::string text = fmt::format("m.{}(", function.name);
  for (const std::size_t slot : slots) text += fmt::format("#{}, ", slot);
  return {text + "q, k)", kTight, {}, function.name, slots};
}

// The text with `by` added to each marked slot.
std::string MaskWriter::moved(const std::string& text, std::int64_t by) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    result += text[at++];
    if (result.back() != '#') continue;
    std::int64_t slot = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      slot = slot * 10 + (text[at++] - '0');
    result += std::to_string(slot + by);
  }
  return result;
}

Piece MaskWriter::place(MaskPart part) {
  part.piece.text = moved(part.piece.text, std::ssize(numbers_));
  for (std::size_t& slot : part.piece.slots) slot += numbers_.size();
  numbers_.insert(numbers_.end(), part.numbers.begin(), part.numbers.end());
  return std::move(part.piece);
}

std::size_t MaskWriter::table(const std::vector<MaskPart>& parts,
                              const std::vector<std::size_t>& which) {
  const std::size_t offset = slot("a list's offset", std::ssize(lists_));
  numbers_[offset].is_offset = true;
  for (const std::size_t i : which) {
    for (const MaskNumber& number : parts[i].numbers) {
      if (number.is_offset) offsets_.push_back(lists_.size());
      lists_.push_back(number.value);
    }
  }
  return offset;
}

void MaskWriter::program(const std::vector<MaskNumber>& words, bool uses_blocks) {
  program_uses_blocks_ = uses_blocks;
  const std::size_t offset = slot("a list's offset", std::ssize(lists_));
  numbers_[offset].is_offset = true;
  for (const MaskNumber& word : words) {
    if (word.is_offset) offsets_.push_back(lists_.size());
    lists_.push_back(word.value);
  }
}

Piece MaskWriter::blocks(const std::shared_ptr<const BlockLayout>& layout, std::string_view name) {
  if (code_.layout != nullptr && code_.layout != layout && !(*code_.layout == *layout)) {
    base::fail(
        ErrorCode::kUnsupported,
        "the expression has two different layouts ({} and another); a kernel reads only one: "
        "combine them beforehand",
        name);
  }
  code_.layout = layout;
  return {"m.blocks(q, k)", kTight, {}, functions::blocks.name};
}

MaskCode MaskWriter::finish(std::string text) {
  std::erase(text, '#');
  code_.text = std::move(text);
  code_.uses_blocks = program_uses_blocks_ || code_.text.find("m.blocks(") != std::string::npos;
  // A blocks() that cannot change the result is left out of the text, and then no layout is needed.
  if (!code_.uses_blocks) code_.layout = nullptr;
  // The slot of a number depends only on the structure, so equal structures share a kernel. The
  // index at which a list begins depends on the values.
  const auto spilled =
      static_cast<std::int64_t>(numbers_.size() - std::min(numbers_.size(), room_));
  const auto move = [&](std::int32_t& offset) {
    offset = device_number("a list's offset", offset + spilled);
  };
  for (MaskNumber& number : numbers_) {
    if (number.is_offset) move(number.value);
  }
  for (const std::size_t at : offsets_) move(lists_[at]);
  for (std::size_t slot = 0; slot < numbers_.size(); ++slot) {
    (slot < room_ ? code_.numbers : code_.lists).push_back(numbers_[slot].value);
  }
  if (code_.lists.empty()) {
    code_.lists = std::move(lists_);  // moved, because a copy may take long
  } else {
    code_.lists.insert(code_.lists.end(), lists_.begin(), lists_.end());
  }
  code_.calls = leaf_calls(code_.text);
  return std::move(code_);
}

}  // namespace annulus::pattern::leaves
