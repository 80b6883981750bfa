#ifndef ANNULUS_SIMULATOR_DECODE_TYPE_H_
#define ANNULUS_SIMULATOR_DECODE_TYPE_H_

// The types of PTX instructions (PTX ISA 9.0, section 5.2).

#include <cstdint>
#include <string_view>

namespace annulus::simulator {

// A PTX type: the meaning of the bits, and their number.
struct Type {
  enum Kind : std::uint8_t { kBits, kUnsigned, kSigned, kFloat, kBrain, kPredicate };
  Kind kind = kBits;
  int bits = 32;
  int count = 1;  // 2 for packed types such as f16x2

  int bytes() const { return bits * count / 8; }
  bool is_integer() const { return kind <= kSigned; }
  friend bool operator==(const Type&, const Type&) = default;
};

// The type with the name `text`. If there is none, its bits are 0.
Type parse_type(std::string_view text);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_TYPE_H_
