#include "simulator/ptx/declaration.h"

#include <bit>
#include <utility>

namespace annulus::ptx {
namespace {

// More bytes than any device has. With this bound no product of sizes wraps around.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxAlignment = 4096;
// The limit for variables of a CTA or a thread. Their memory is far smaller, and is counted in 32
// bits.
constexpr std::uint64_t kMaxOwnBytes = std::uint64_t{1} << 24;

// name [+ N], or generic(name) [+ N]. Both are the same here, because the address of a variable in
// global or constant memory is its generic address.
Relocation parse_relocation(TokenStream& tokens, std::uint64_t offset) {
  Relocation result;
  result.offset = offset;
  result.symbol = tokens.name();
  if (result.symbol == "generic" && tokens.accept('(')) {
    result.symbol = tokens.name();
    tokens.expect(')');
  }
  if (tokens.accept('+')) result.addend = tokens.integer();
  return result;
}

// Parses a number or address of an initializer, and appends it to the variable's initial bytes.
void parse_element(TokenStream& tokens, Variable& variable, std::size_t element_bytes) {
  std::uint64_t bits = 0;
  const bool minus = tokens.accept('-');
  const Token token = tokens.current();
  if (token.kind == TokenKind::kInteger) {
    bits = minus ? 0 - token.bits : token.bits;
    tokens.advance();
  } else if (token.kind == TokenKind::kFloat) {
    double real = std::bit_cast<double>(token.bits);
    if (minus) real = -real;
    bits = element_bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(real))
                              : std::bit_cast<std::uint64_t>(real);
    tokens.advance();
  } else if (token.kind == TokenKind::kName && element_bytes == 8 && !minus) {
    variable.relocations.push_back(parse_relocation(tokens, variable.initial.size()));
  } else {
    tokens.fail("only numbers and addresses are supported in an initializer");
  }
  for (std::size_t i = 0; i < element_bytes; ++i) {
    variable.initial.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
}

void parse_initializer(TokenStream& tokens, Variable& variable, std::size_t element_bytes) {
  int depth = 0;
  do {
    while (tokens.accept('{')) ++depth;
    if (!tokens.is('}')) parse_element(tokens, variable, element_bytes);
    while (depth > 0 && tokens.accept('}')) --depth;
  } while (depth > 0 && tokens.accept(','));
  if (depth != 0) tokens.fail("expected '}'");
  if (variable.bytes == 0) variable.bytes = variable.initial.size();
  if (variable.initial.size() > variable.bytes) tokens.fail("more initial values than elements");
}

// Parses .attribute(.managed): the host uses the variable too. The host can use all memory of a
// simulated device, so the attribute needs no action.
void parse_attribute(TokenStream& tokens, Space space) {
  tokens.expect('(');
  if (space != Space::kGlobal || !tokens.accept(".managed")) {
    tokens.fail("the only attribute that is supported is .managed, of a global variable");
  }
  tokens.expect(')');
}

// Parses [.align N] .type name [ [N]... ] [= initializer]. Directives may come in any order. .ptr
// and the space after it only describe a pointer and have no effect. The first extent may be empty:
// the initializer determines it, or the launch, for extern shared memory.
Variable parse_variable(TokenStream& tokens, Space space, bool external) {
  Variable result;
  result.space = space;
  result.external = external;
  std::uint64_t element_bytes = 0;
  std::uint64_t vector = 1;
  bool aligned = false;
  while (tokens.is(TokenKind::kDirective)) {
    const std::string_view directive = tokens.current().text;
    if (tokens.accept(".align")) {
      result.alignment = tokens.integer();
      if (!std::has_single_bit(result.alignment) || result.alignment > kMaxAlignment) {
        tokens.fail("an alignment has to be a power of two up to 4096");
      }
      aligned = true;
      continue;
    }
    if (tokens.accept(".attribute")) {
      parse_attribute(tokens, space);
      continue;
    }
    if (directive == ".v2" || directive == ".v4") {
      vector = static_cast<std::uint64_t>(directive[2] - '0');
    } else if (directive != ".ptr" && !space_of(directive)) {  // .param .u64 .ptr .global name
      element_bytes = static_cast<std::uint64_t>(type_bits(directive.substr(1)) + 7) / 8;
      if (element_bytes == 0) tokens.fail("unknown type");
    }
    tokens.advance();
  }
  if (element_bytes == 0) tokens.fail("a variable needs a type");
  result.name = tokens.name();
  result.bytes = element_bytes * vector;
  if (!aligned) result.alignment = result.bytes;
  while (tokens.accept('[')) {
    const std::uint64_t extent = tokens.is(']') ? 0 : tokens.integer();
    if (extent != 0 && result.bytes > kMaxBytes / extent) tokens.fail("this array is too large");
    result.bytes *= extent;
    tokens.expect(']');
  }
  const bool shared_by_all = space == Space::kGlobal || space == Space::kConst;
  if (!shared_by_all && result.bytes > kMaxOwnBytes) tokens.fail("this variable is too large");
  if (tokens.accept('=')) parse_initializer(tokens, result, element_bytes);
  return result;
}

}  // namespace

int type_bits(std::string_view type) {
  static constexpr std::pair<std::string_view, int> kTypes[] = {
      {"pred", 1}, {"b8", 8},   {"u8", 8},   {"s8", 8},     {"b16", 16},
      {"u16", 16}, {"s16", 16}, {"f16", 16}, {"bf16", 16},  {"b32", 32},
      {"u32", 32}, {"s32", 32}, {"f32", 32}, {"f16x2", 32}, {"bf16x2", 32},
      {"b64", 64}, {"u64", 64}, {"s64", 64}, {"f64", 64},   {"b128", 128}};
  for (const auto& [name, bits] : kTypes) {
    if (name == type) return bits;
  }
  return 0;
}

std::optional<Space> space_of(std::string_view directive) {
  if (directive == ".global") return Space::kGlobal;
  if (directive == ".const") return Space::kConst;
  if (directive == ".shared") return Space::kShared;
  if (directive == ".local") return Space::kLocal;
  if (directive == ".param") return Space::kParam;
  return std::nullopt;
}

std::vector<Variable> parse_variables(TokenStream& tokens, Space space, bool external) {
  std::vector<Variable> result;
  do {
    result.push_back(parse_variable(tokens, space, external));
  } while (tokens.accept(','));
  tokens.expect(';');
  return result;
}

std::vector<Variable> parse_parameters(TokenStream& tokens) {
  std::vector<Variable> result;
  if (!tokens.accept('(')) return result;
  while (!tokens.is(')')) {
    if (tokens.is(".reg")) {
      tokens.fail("parameters in registers are not supported; use .param");
    }
    tokens.expect(".param");
    result.push_back(parse_variable(tokens, Space::kParam, false));
    if (!tokens.accept(',')) break;
  }
  tokens.expect(')');
  return result;
}

}  // namespace annulus::ptx
