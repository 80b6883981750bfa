#ifndef ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_
#define ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_

// What a leaf writes its code with: the text names a device function and slots, the numbers and
// lists of the slots are kept here for the launch.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pattern/leaves/leaf.h"
#include "pattern/mask_code.h"

namespace annulus::pattern::leaves {

// How tightly a piece of text holds together, loosest first.
enum Strength { kWeakOr, kWeakAnd, kTight };

// Text of type bool, and its value where that is the same for all pairs.
struct Piece {
  std::string text;
  Strength strength = kTight;
  std::optional<bool> constant = {};
};

inline Piece constant(bool value) { return {value ? "true" : "false", kTight, value}; }

// All throw Error{kUnsupported} for what a device cannot hold.
class MaskWriter {
 public:
  MaskWriter(std::size_t number_slots, const MaskScope& scope)
      : room_(number_slots), scope_(scope) {}

  const MaskScope& scope() const { return scope_; }

  void count_leaf() { ++leaves_; }

  // A number that the text names by its slot; `what` is for messages.
  std::size_t slot(const char* what, std::int64_t value);
  // Two slots: where the list begins, and its length.
  std::pair<std::size_t, std::size_t> list_slots(const char* what,
                                                 const std::vector<std::int64_t>& list);
  Piece call(const DeviceFunction& function, std::initializer_list<std::size_t> slots);
  // m.blocks(q, k), of the one layout that an expression may have.
  Piece blocks(const std::shared_ptr<const BlockLayout>& layout, std::string_view name);

  // The numbers and lists of an expression whose text is done.
  MaskCode finish(std::string text);

 private:
  std::size_t room_;
  const MaskScope& scope_;
  MaskCode code_;
  int leaves_ = 0;
  bool is_long_ = false;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int32_t> lists_;
  std::vector<std::size_t> offset_slots_;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_
