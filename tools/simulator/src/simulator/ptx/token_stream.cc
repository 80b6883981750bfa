#include "simulator/ptx/token_stream.h"

#include "base/fail.h"

namespace annulus::ptx {

const Token& TokenStream::peek() {
  if (!ahead_) ahead_ = lexer_.next();
  return *ahead_;
}

void TokenStream::advance() {
  token_ = ahead_ ? *ahead_ : lexer_.next();
  ahead_.reset();
}

bool TokenStream::accept(char character) {
  if (!is(character)) return false;
  advance();
  return true;
}

bool TokenStream::accept(std::string_view word) {
  if (!is(word)) return false;
  advance();
  return true;
}

void TokenStream::expect(char character) {
  if (!accept(character)) fail(fmt::format("expected '{}'", character));
}

void TokenStream::expect(std::string_view word) {
  if (!accept(word)) fail(fmt::format("expected {}", word));
}

std::string TokenStream::name() {
  if (!is(TokenKind::kName)) fail("expected a name");
  std::string text(token_.text);
  advance();
  return text;
}

std::uint64_t TokenStream::integer() {
  const bool minus = accept('-');
  if (!is(TokenKind::kInteger)) fail("expected an integer");
  const std::uint64_t value = token_.bits;
  advance();
  return minus ? 0 - value : value;
}

void TokenStream::skip_to_semicolon() {
  while (!is(';') && !is(TokenKind::kEnd)) advance();
  accept(';');
}

void TokenStream::fail(std::string_view what) const {
  base::fail(ErrorCode::kParse, "PTX line {}: {} (at '{}')", token_.line, what,
             is(TokenKind::kEnd) ? "end of text" : token_.text);
}

void TokenStream::unsupported(std::string_view what) const {
  base::fail(ErrorCode::kUnsupported, "PTX line {}: {}", token_.line, what);
}

}  // namespace annulus::ptx
