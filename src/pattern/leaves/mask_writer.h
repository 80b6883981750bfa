#ifndef ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_
#define ANNULUS_PATTERN_LEAVES_MASK_WRITER_H_

// Writes the code of leaves: the text names a device function and slots, and the writer stores the
// numbers and lists of the slots for the launch. Until the text is finished, a slot is marked by
// '#', because parts that differ only in their numbers share one text (mask_code.cc).

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

// A text of type bool, and its value if that is the same for all pairs.
struct Piece {
  std::string text;
  Strength strength = kTight;
  std::optional<bool> constant = {};
  // The name of the function and its slots in order, if the text is a single call.
  std::string_view function = {};
  std::vector<std::size_t> slots = {};
};

inline Piece constant(bool value) { return {value ? "true" : "false", kTight, value}; }

// The number in a slot.
struct MaskNumber {
  std::int32_t value = 0;
  bool is_offset = false;  // the index of a list, which changes when the lists are put together
};

// The text of a part, with slots from 0 on, and the numbers of the slots.
struct MaskPart {
  Piece piece;
  std::vector<MaskNumber> numbers;
};

// A function of templates/tile/mask.cuh that the text of a mask calls. A long function searches in
// memory or divides for each element, in a loop over a row's columns; any other function computes
// the bits of a row by arithmetic.
struct DeviceFunction {
  std::string_view name;
  bool is_long;
};

// The names of the functions. Each name occurs only here.
namespace functions {
#define ANNULUS_COMPARED_LEAF(name, slots) inline constexpr DeviceFunction name = {#name, false};
#define ANNULUS_SEARCHED_LEAF(name, slots) inline constexpr DeviceFunction name = {#name, true};
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
}  // namespace functions

// The number in the type of the device. Throws Error{kUnsupported} beyond its range; `what` is for
// the message.
std::int32_t device_number(const char* what, std::int64_t value);

// All functions throw Error{kUnsupported} for numbers and lists that a device cannot hold.
class MaskWriter {
 public:
  MaskWriter(std::size_t number_slots, const MaskScope& scope)
      : room_(number_slots), scope_(scope) {}

  const MaskScope& scope() const { return scope_; }

  // Stores a number and returns its slot, which the text names; `what` is for messages.
  std::size_t slot(const char* what, std::int64_t value);
  // Stores a list. Its two slots hold its first index and its length.
  std::pair<std::size_t, std::size_t> list_slots(const char* what,
                                                 const std::vector<std::int64_t>& list);
  // Stores a long list in the same way. next() returns its parts one after another.
  std::pair<std::size_t, std::size_t> list_slots(
      const char* what, std::int64_t length,
      const std::function<const std::vector<std::int64_t>&()>& next);
  Piece call(const DeviceFunction& function, std::initializer_list<std::size_t> slots);
  // The piece m.blocks(q, k), for the one layout that an expression may have.
  Piece blocks(const std::shared_ptr<const BlockLayout>& layout, std::string_view name);

  // Makes a part that is not yet in the text: write() adds its slots, which are then removed again.
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
  // Adds the slots of a part after the slots that exist.
  Piece place(MaskPart part);
  // Stores the numbers of parts of one text in a list, one row after another, and adds a slot with
  // the index of the list.
  std::size_t table(const std::vector<MaskPart>& parts, const std::vector<std::size_t>& which);

  // Stores a program (attention/kernels/mask_program.h) in a list, and adds a slot with the index
  // of the list.
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
