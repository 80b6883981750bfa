#include "simulator/ptx/operand.h"

#include <string>
#include <utility>

namespace annulus::ptx {
namespace {

// The bound on nesting. Lists of call arguments and coordinate vectors nest once. Vectors of
// vectors do not exist.
constexpr int kMaxDepth = 4;

Operand parse_single(TokenStream& tokens, const Scopes& scopes, int depth);

// [reg], [symbol], [reg + N], [N], [tensorMap, {c0, c1}]
Operand parse_address(TokenStream& tokens, const Scopes& scopes, int depth) {
  tokens.expect('[');
  Operand result;
  result.kind = OperandKind::kAddress;
  if (tokens.is(TokenKind::kInteger) || tokens.is('-')) {
    result.offset = static_cast<std::int64_t>(tokens.integer());
  } else {
    const std::string text = tokens.name();
    result.reg = scopes.find_register(text);
    if (result.reg < 0) {
      if (text[0] == '%') tokens.fail("unknown register '" + text + "'");
      result.text = scopes.find_variable(text);
    }
  }
  std::uint64_t offset = static_cast<std::uint64_t>(result.offset);  // wraps around
  while (tokens.is('+') || tokens.is('-')) {
    const bool minus = tokens.is('-');
    tokens.advance();
    const std::uint64_t value = tokens.integer();
    offset += minus ? 0 - value : value;
  }
  result.offset = static_cast<std::int64_t>(offset);
  if (tokens.accept(',')) result.elements.push_back(parse_single(tokens, scopes, depth));
  tokens.expect(']');
  return result;
}

// {a, b, ...} or (a, b, ...)
Operand parse_group(TokenStream& tokens, const Scopes& scopes, int depth) {
  const char close = tokens.is('{') ? '}' : ')';
  Operand result;
  result.kind = close == '}' ? OperandKind::kVector : OperandKind::kList;
  tokens.advance();
  while (!tokens.is(close)) {
    result.elements.push_back(parse_single(tokens, scopes, depth));
    if (!tokens.accept(',')) break;
  }
  tokens.expect(close);
  return result;
}

Operand parse_number(TokenStream& tokens) {
  Operand result;
  const bool minus = tokens.accept('-');
  const Token& token = tokens.current();
  if (token.kind != TokenKind::kInteger && token.kind != TokenKind::kFloat) {
    tokens.fail("expected a number");
  }
  result.kind = OperandKind::kImmediate;
  result.is_float = token.kind == TokenKind::kFloat;
  result.bits = token.bits;
  if (minus) result.bits = result.is_float ? result.bits ^ (1ull << 63) : 0 - result.bits;
  tokens.advance();
  return result;
}

Operand parse_named(TokenStream& tokens, const Scopes& scopes) {
  Operand result;
  result.text = tokens.name();
  if (result.text == "_") return {};
  if (result.text == "WARP_SZ") {
    result.kind = OperandKind::kImmediate;
    result.bits = 32;
    result.text.clear();
  } else if (result.reg = scopes.find_register(result.text); result.reg >= 0) {
    result.kind = OperandKind::kRegister;
    result.text.clear();
  } else if (result.text[0] == '%') {
    result.kind = OperandKind::kSpecial;
  } else {
    result.kind = OperandKind::kSymbol;
    result.text = scopes.find_variable(result.text);
    if (tokens.accept('+')) result.offset = static_cast<std::int64_t>(tokens.integer());
  }
  return result;
}

Operand parse_single(TokenStream& tokens, const Scopes& scopes, int depth) {
  if (depth > kMaxDepth) tokens.fail("operands nest too deep");
  if (tokens.is('{') || tokens.is('(')) return parse_group(tokens, scopes, depth + 1);
  if (tokens.is('[')) return parse_address(tokens, scopes, depth + 1);
  if (tokens.accept('!')) {
    Operand result = parse_single(tokens, scopes, depth + 1);
    result.negated = !result.negated;
    return result;
  }
  return tokens.is(TokenKind::kName) ? parse_named(tokens, scopes) : parse_number(tokens);
}

}  // namespace

Operand parse_operand(TokenStream& tokens, const Scopes& scopes) {
  Operand first = parse_single(tokens, scopes, 0);
  if (!tokens.is('|')) return first;
  Operand pair;
  pair.kind = OperandKind::kPair;
  pair.elements.push_back(std::move(first));
  while (tokens.accept('|')) pair.elements.push_back(parse_single(tokens, scopes, 0));
  return pair;
}

}  // namespace annulus::ptx
