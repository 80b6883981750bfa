#include "simulator/ptx/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <system_error>

#include "base/fail.h"

namespace annulus::ptx {
namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$';
}
bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Widens the bits of an fp32 to the bits of the double with the same value. A NaN keeps its
// payload, which a conversion by the processor might change.
std::uint64_t widen(std::uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u && (bits & 0x7fffffu) != 0) {
    return (std::uint64_t{bits & 0x80000000u} << 32) | 0x7ff0000000000000u |
           (std::uint64_t{bits & 0x7fffffu} << 29);
  }
  return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
}

}  // namespace

void Lexer::skip_space() {
  while (position_ < text_.size()) {
    const char c = at(0);
    if (std::isspace(static_cast<unsigned char>(c))) {
      if (c == '\n') ++line_;
      ++position_;
    } else if (c == '/' && at(1) == '/') {
      while (position_ < text_.size() && at(0) != '\n') ++position_;
    } else if (c == '/' && at(1) == '*') {
      const int start = line_;
      position_ += 2;
      while (!(at(0) == '*' && at(1) == '/')) {
        if (position_ >= text_.size()) {
          base::fail(ErrorCode::kParse, "PTX line {}: this comment is not closed", start);
        }
        if (at(0) == '\n') ++line_;
        ++position_;
      }
      position_ += 2;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_space();
  Token token;
  token.line = line_;
  if (position_ >= text_.size() || at(0) == '\0') return token;
  const std::size_t start = position_;
  const char c = at(0);
  if (std::isdigit(static_cast<unsigned char>(c))) return number();
  if (starts_name(c) || (c == '.' && starts_name(at(1)))) {
    ++position_;
    // A double colon is part of a modifier: L2::128B. Modifiers of an instruction are part of its
    // name. Directives are separate tokens, even if nothing separates them: .reg.b32 x.
    while (continues_name(at(0)) || (c != '.' && at(0) == '.' && continues_name(at(1))) ||
           (at(0) == ':' && at(1) == ':')) {
      position_ += at(0) == ':' ? 2 : 1;
    }
    token.kind = c == '.' ? TokenKind::kDirective : TokenKind::kName;
    token.text = text_.substr(start, position_ - start);
    return token;
  }
  if (c == '"') {
    ++position_;
    while (at(0) != '"') {
      if (position_ >= text_.size() || at(0) == '\n') {
        base::fail(ErrorCode::kParse, "PTX line {}: this string is not closed", line_);
      }
      position_ += at(0) == '\\' ? 2 : 1;
    }
    token.kind = TokenKind::kString;
    token.text = text_.substr(start + 1, position_ - start - 1);
    ++position_;
    return token;
  }
  ++position_;
  token.kind = TokenKind::kPunctuation;
  token.punctuation = c;
  token.text = text_.substr(start, 1);
  return token;
}

// A number is one of three. 0f with 8 or 0d with 16 hexadecimal digits are the bits of a float
// (compilers write these). An integer has base 16, 2, 8 or 10, with an optional U. A decimal float
// has a point or an exponent (people write these). Integers of PTX have 64 bits; longer ones, which
// no compiler writes, wrap around.
Token Lexer::number() {
  Token token;
  token.line = line_;
  const std::size_t start = position_;
  const char marker = at(1);
  if (at(0) == '0' && (marker == 'f' || marker == 'F' || marker == 'd' || marker == 'D')) {
    position_ += 2;
    const std::size_t digits = marker == 'f' || marker == 'F' ? 8 : 16;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < digits; ++i, ++position_) {
      if (digit_value(at(0)) > 15) {
        base::fail(ErrorCode::kParse, "PTX line {}: '{}' needs {} hexadecimal digits", line_,
                   text_.substr(start, position_ - start), digits);
      }
      bits = bits * 16 + static_cast<std::uint64_t>(digit_value(at(0)));
    }
    token.kind = TokenKind::kFloat;
    token.bits = digits == 16 ? bits : widen(static_cast<std::uint32_t>(bits));
    token.text = text_.substr(start, position_ - start);
    return token;
  }
  int radix = 10;
  if (at(0) == '0' && (marker == 'x' || marker == 'X')) {
    radix = 16;
    position_ += 2;
  } else if (at(0) == '0' && (marker == 'b' || marker == 'B')) {
    radix = 2;
    position_ += 2;
  } else if (at(0) == '0') {
    radix = 8;
  }
  std::uint64_t value = 0;
  while (digit_value(at(0)) < radix) {
    value =
        value * static_cast<std::uint64_t>(radix) + static_cast<std::uint64_t>(digit_value(at(0)));
    ++position_;
  }
  const bool exponent =
      (at(0) == 'e' || at(0) == 'E') && (at(1) == '-' || at(1) == '+' || digit_value(at(1)) < 10);
  if (radix != 16 && radix != 2 && (at(0) == '.' || exponent)) {  // 1.5, 1e-3
    double real = 0;  // strtod would follow the locale, in which the point may be a comma
    const auto [end, error] =
        std::from_chars(text_.data() + start, text_.data() + text_.size(), real);
    if (error != std::errc()) {
      base::fail(ErrorCode::kParse, "PTX line {}: a number that is too large for fp64", line_);
    }
    position_ = static_cast<std::size_t>(end - text_.data());
    token.kind = TokenKind::kFloat;
    token.bits = std::bit_cast<std::uint64_t>(real);
    token.text = text_.substr(start, position_ - start);
    return token;
  }
  if (at(0) == 'U') ++position_;
  token.kind = TokenKind::kInteger;
  token.bits = value;
  token.text = text_.substr(start, position_ - start);
  return token;
}

}  // namespace annulus::ptx
