#ifndef ANNULUS_SIMULATOR_PTX_LEXER_H_
#define ANNULUS_SIMULATOR_PTX_LEXER_H_

// Splits PTX text into tokens (PTX ISA 9.0, section 4). A name includes its points, so `add.s32` is
// one token and `.reg` another. The parser gives tokens their meaning.

#include <cstdint>
#include <string_view>

namespace annulus::ptx {

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,       // %r1, $L__BB0_1, add.s32, fa_fwd_param_0, _
  kDirective,  // .reg, .b32
  kInteger,    // the value, as bits
  kFloat,      // the bits of a double
  kString,     // text without the quotes
  kPunctuation,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  char punctuation = 0;
  std::string_view text;
  std::uint64_t bits = 0;
  int line = 0;

  bool is(char character) const {
    return kind == TokenKind::kPunctuation && punctuation == character;
  }
  bool is(std::string_view word) const {
    return (kind == TokenKind::kName || kind == TokenKind::kDirective) && text == word;
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // The next token. At the end of the text every call returns kEnd. Throws Error{kParse} with the
  // line.
  Token next();

 private:
  void skip_space();
  Token number();
  char at(std::size_t ahead) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_LEXER_H_
