#include "simulator/decode/type.h"

namespace annulus::simulator {

Type parse_type(std::string_view text) {
  if (text == "f16x2") return {Type::kFloat, 16, 2};
  if (text == "bf16x2") return {Type::kBrain, 16, 2};
  if (text == "bf16") return {Type::kBrain, 16, 1};
  if (text == "pred") return {Type::kPredicate, 1, 1};
  if (text.size() < 2 || text.size() > 3) return {Type::kBits, 0, 1};
  Type type;
  switch (text[0]) {
    case 'b':
      type.kind = Type::kBits;
      break;
    case 'u':
      type.kind = Type::kUnsigned;
      break;
    case 's':
      type.kind = Type::kSigned;
      break;
    case 'f':
      type.kind = Type::kFloat;
      break;
    default:
      return {Type::kBits, 0, 1};
  }
  const std::string_view digits = text.substr(1);
  type.bits = digits == "8"    ? 8
              : digits == "16" ? 16
              : digits == "32" ? 32
              : digits == "64" ? 64
                               : 0;
  return type;
}

}  // namespace annulus::simulator
