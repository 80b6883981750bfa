#ifndef ANNULUS_SIMULATOR_DECODE_TYPE_H_
#define ANNULUS_SIMULATOR_DECODE_TYPE_H_

// The types of PTX instructions (PTX ISA 9.0, section 5.2).

#include <cstdint>
#include <string_view>

namespace annulus::simulator {

// A PTX type: what the bits mean, and how many there are.
struct Type {
  enum Kind : std::uint8_t { kBits, kUnsigned, kSigned, kFloat, kBrain, kPredicate };
  Kind kind = kBits;
  int bits = 32;
  int count = 1;  // 2: packed, as f16x2

  int bytes() const { return bits * count / 8; }
  bool is_integer() const { return kind <= kSigned; }
  friend bool operator==(const Type&, const Type&) = default;
};

// The type that `text` names, or bits == 0.
Type parse_type(std::string_view text);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_TYPE_H_
