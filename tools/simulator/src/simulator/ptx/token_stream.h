#ifndef ANNULUS_SIMULATOR_PTX_TOKEN_STREAM_H_
#define ANNULUS_SIMULATOR_PTX_TOKEN_STREAM_H_

// The tokens of a PTX text, one current and one ahead. All parts of the parser use these functions:
// is() compares the current token, accept() consumes it if it is equal, and expect() requires that
// it is equal.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/ptx/lexer.h"

namespace annulus::ptx {

class TokenStream {
 public:
  explicit TokenStream(std::string_view text) : lexer_(text) { advance(); }

  const Token& current() const { return token_; }
  const Token& peek();
  bool is(char character) const { return token_.is(character); }
  bool is(std::string_view word) const { return token_.is(word); }
  bool is(TokenKind kind) const { return token_.kind == kind; }

  void advance();
  bool accept(char character);
  bool accept(std::string_view word);
  void expect(char character);
  void expect(std::string_view word);
  std::string name();
  // Parses a number with or without a sign, in two's complement.
  std::uint64_t integer();
  void skip_to_semicolon();

  // Throws Error{kParse}: "PTX line N: what (at 'token')". unsupported() throws
  // Error{kUnsupported}.
  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  Lexer lexer_;
  Token token_;
  std::optional<Token> ahead_;
};

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_TOKEN_STREAM_H_
