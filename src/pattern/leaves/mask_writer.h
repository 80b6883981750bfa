#ifndef ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_
#define ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_

// Writes the code of leaves: the text names a device function and slots, and the writer keeps the
// numbers and lists of the slots for the launch. Until the text is finished a slot is marked by
// '#', since parts that are alike but for their numbers share one text (mask_code.cc).

#include <cstdint>
#include <functional>
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

// The precedence of a piece of text, lowest first.
enum Strength { kWeakOr, kWeakAnd, kTight };

// Text of type bool, with its value where that is the same for all pairs.
struct Piece {
  std::string text;
  Strength strength = kTight;
  std::optional<bool> constant = {};
  // The name of the function and its slots in order, where the text is one call.
  std::string_view function = {};
  std::vector<std::size_t> slots = {};
};

inline Piece constant(bool value) { return {value ? "true" : "false", kTight, value}; }

// A number of a slot.
struct MaskNumber {
  std::int32_t value = 0;
  bool is_offset = false;  // where a list begins, which moves when the lists are put together
};

// The text of a part with slots from 0 on, and their numbers.
struct MaskPart {
  Piece piece;
  std::vector<MaskNumber> numbers;
};

// A function of templates/tile/mask.cuh that the text of a mask calls. A long function searches in
// memory or divides for each element, in a loop over a row's columns; any other gives the bits of a
// row by arithmetic.
struct DeviceFunction {
  std::string_view name;
  bool is_long;
};

// Each function has its own name here.
namespace functions {
#define ANNULUS_COMPARED_LEAF(name, slots) inline constexpr DeviceFunction name = {#name, false};
#define ANNULUS_SEARCHED_LEAF(name, slots) inline constexpr DeviceFunction name = {#name, true};
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
}  // namespace functions

// The number as a device has it. Throws Error{kUnsupported} beyond its range; `what` is for the
// message.
std::int32_t device_number(const char* what, std::int64_t value);

// All functions throw Error{kUnsupported} for numbers and lists that a device cannot hold.
class MaskWriter {
 public:
  MaskWriter(std::size_t number_slots, const MaskScope& scope)
      : room_(number_slots), scope_(scope) {}

  const MaskScope& scope() const { return scope_; }

  // Stores a number, which the text names by its slot; `what` is for messages.
  std::size_t slot(const char* what, std::int64_t value);
  // Stores a list. Its two slots are where it begins and its length.
  std::pair<std::size_t, std::size_t> list_slots(const char* what,
                                                 const std::vector<std::int64_t>& list);
  // The same for a long list, whose parts next() returns one after another.
  std::pair<std::size_t, std::size_t> list_slots(
      const char* what, std::int64_t length,
      const std::function<const std::vector<std::int64_t>&()>& next);
  Piece call(const DeviceFunction& function, std::initializer_list<std::size_t> slots);
  // m.blocks(q, k), of the one layout that an expression may have.
  Piece blocks(const std::shared_ptr<const BlockLayout>& layout, std::string_view name);

  // Makes a part by itself: write() adds its slots, which are then taken back.
  template <typename Write>
  MaskPart part(const Write& write) {
    const std::size_t first = numbers_.size();
    MaskPart made;
    made.piece = write();
    made.piece.text = moved(made.piece.text, -static_cast<std::int64_t>(first));
    for (std::size_t& slot : made.piece.slots) slot -= first;
    made.numbers.assign(numbers_.begin() + static_cast<std::ptrdiff_t>(first), numbers_.end());
    numbers_.resize(first);
    return made;
  }
  // Adds the slots of a part to those there are.
  Piece place(MaskPart part);
  // Stores the numbers of parts of one text in a list, one row after another, and adds the slot of
  // where it begins.
  std::size_t table(const std::vector<MaskPart>& parts, const std::vector<std::size_t>& which);

  // Stores a program (attention/kernels/mask_program.h) in a list, and adds the slot of where it
  // begins.
  void program(const std::vector<MaskNumber>& words, bool uses_blocks);

  // The code of an expression whose text is complete, with its numbers and lists.
  MaskCode finish(std::string text);

 private:
  static std::string moved(const std::string& text, std::int64_t by);

  std::size_t room_;
  const MaskScope& scope_;
  MaskCode code_;
  bool program_uses_blocks_ = false;
  std::vector<MaskNumber> numbers_;
  std::vector<std::int32_t> lists_;
  std::vector<std::size_t> offsets_;  // entries of lists_ that are offsets
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_
