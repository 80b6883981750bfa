#include "ptx/parser.h"

#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "ptx/lexer.h"

namespace annulus::ptx {
namespace {

// Bits of a fundamental type (PTX ISA 9.0, section 5.2); 0 for anything else.
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

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  Module run();

 private:
  [[noreturn]] void fail(std::string_view what) const {
    base::fail(ErrorCode::kParse, "PTX line {}: {} (at '{}')", token_.line, what,
               token_.kind == TokenKind::kEnd ? "end of text" : token_.text);
  }
  void advance() {
    token_ = ahead_ ? *ahead_ : lexer_.next();
    ahead_.reset();
  }
  const Token& peek() {
    if (!ahead_) ahead_ = lexer_.next();
    return *ahead_;
  }
  void expect(char character) {
    if (!token_.is(character)) fail(std::string("expected '") + character + "'");
    advance();
  }
  bool accept(char character) {
    if (!token_.is(character)) return false;
    advance();
    return true;
  }
  std::string name() {
    if (token_.kind != TokenKind::kName) fail("expected a name");
    std::string text(token_.text);
    advance();
    return text;
  }
  std::uint64_t integer() {
    const bool minus = accept('-');
    if (token_.kind != TokenKind::kInteger) fail("expected an integer");
    const std::uint64_t value = token_.bits;
    advance();
    return minus ? 0 - value : value;
  }

  void file_directive();
  void location_directive();
  void skip_section();
  void skip_to_semicolon() {
    while (!token_.is(';') && token_.kind != TokenKind::kEnd) advance();
    accept(';');
  }
  Variable variable(Space space, bool external);
  void initializer(Variable& variable, int element_bits);
  Relocation relocation(Variable& variable);
  std::vector<Variable> parameters();
  void function(bool entry, bool external);
  void body();
  void registers();
  void instruction();
  void branch_targets();
  void indexed_branch(const Instruction& branch);
  std::int32_t target(const std::string& text);
  Operand operand();
  Operand single_operand();
  Operand address();
  std::int32_t find_register(std::string_view text) const;
  std::int32_t label(const std::string& text);
  std::string scoped(const std::string& text) const;

  Lexer lexer_;
  Token token_;
  std::optional<Token> ahead_;
  Module module_;
  Function* function_ = nullptr;
  int location_ = -1;
  // Innermost scope last; each maps a name to an index of function_->registers.
  std::vector<std::map<std::string, std::int32_t, std::less<>>> scopes_;
  std::vector<std::string> scope_names_;
  int scope_counter_ = 0;
  std::map<std::string, std::int32_t> labels_;
  std::string last_label_;
  std::map<std::string, std::vector<std::string>> tables_;  // of brx.idx, by label
  std::set<std::int32_t> placed_labels_;
};

Module Parser::run() {
  while (token_.kind != TokenKind::kEnd) {
    if (token_.is(".version")) {
      advance();
      if (token_.kind != TokenKind::kFloat) fail("expected a version such as 9.0");
      const double version = std::bit_cast<double>(token_.bits);
      module_.version_major = static_cast<int>(version);
      module_.version_minor = static_cast<int>((version - module_.version_major) * 10 + 0.5);
      advance();
    } else if (token_.is(".target")) {
      advance();
      module_.target = name();
      while (accept(',')) name();
    } else if (token_.is(".address_size")) {
      advance();
      if (integer() != 64) fail("only 64-bit addresses are supported");
    } else if (token_.is(".file")) {
      file_directive();
    } else if (token_.is(".section")) {
      skip_section();
    } else if (token_.is(".pragma")) {
      skip_to_semicolon();
    } else {
      bool external = false;
      while (token_.is(".visible") || token_.is(".extern") || token_.is(".weak") ||
             token_.is(".common")) {
        external |= token_.is(".extern");
        advance();
      }
      if (token_.is(".entry") || token_.is(".func")) {
        const bool entry = token_.is(".entry");
        advance();
        function(entry, external);
      } else if (const auto space = space_of(token_.text); space && *space != Space::kParam) {
        advance();
        do {
          module_.variables.push_back(variable(*space, external));
        } while (accept(','));
        expect(';');
      } else {
        fail("expected a directive");
      }
    }
  }
  return std::move(module_);
}

void Parser::file_directive() {
  advance();
  const int number = static_cast<int>(integer());
  if (token_.kind != TokenKind::kString) fail("expected a file name");
  module_.files.emplace_back(number, std::string(token_.text));
  advance();
  while (accept(',')) integer();
}

// .loc FILE LINE COLUMN [, function_name LABEL [+ OFFSET], inlined_at FILE LINE COLUMN]
void Parser::location_directive() {
  advance();
  Location location;
  location.file = static_cast<int>(integer());
  location.line = static_cast<int>(integer());
  integer();
  if (accept(',')) {
    if (!token_.is("function_name")) fail("expected function_name");
    advance();
    name();
    if (accept('+')) integer();
    expect(',');
    if (!token_.is("inlined_at")) fail("expected inlined_at");
    advance();
    Location outer;
    outer.file = static_cast<int>(integer());
    outer.line = static_cast<int>(integer());
    integer();
    // The outer place was itself inlined where the last directive for that very line says so.
    location.inlined_at = -1;
    for (std::size_t i = module_.locations.size(); i-- > 0;) {
      const Location& known = module_.locations[i];
      if (known.file == outer.file && known.line == outer.line) {
        location.inlined_at = static_cast<int>(i);
        break;
      }
    }
    if (location.inlined_at < 0) {
      module_.locations.push_back(outer);
      location.inlined_at = static_cast<int>(module_.locations.size()) - 1;
    }
  }
  module_.locations.push_back(location);
  location_ = static_cast<int>(module_.locations.size()) - 1;
}

void Parser::skip_section() {
  while (!token_.is('{') && token_.kind != TokenKind::kEnd) advance();
  while (!token_.is('}') && token_.kind != TokenKind::kEnd) advance();
  expect('}');
}

// After the space: [.align N] .type name [ [N]... ] [= initializer]
Variable Parser::variable(Space space, bool external) {
  Variable result;
  result.space = space;
  result.external = external;
  int bits = 0;
  int vector = 1;
  bool aligned = false;
  while (token_.kind == TokenKind::kDirective) {
    if (token_.is(".align")) {
      advance();
      result.alignment = integer();
      aligned = true;
      continue;
    }
    if (token_.is(".ptr") || space_of(token_.text)) {  // .param .u64 .ptr .global .align 8 name
      advance();
      continue;
    }
    if (token_.is(".v2") || token_.is(".v4")) {
      vector = token_.text[2] - '0';
    } else {
      bits = type_bits(token_.text.substr(1));
      if (bits == 0) fail("unknown type");
    }
    advance();
  }
  if (bits == 0) fail("a variable needs a type");
  result.name = name();
  std::uint64_t count = 1;
  while (accept('[')) {
    const std::uint64_t extent = token_.is(']') ? 0 : integer();
    if (extent > (std::uint64_t{1} << 40)) fail("this array is too large");
    count *= extent;
    expect(']');
  }
  const std::uint64_t element = static_cast<std::uint64_t>(bits + 7) / 8;
  result.bytes = count * element * static_cast<std::uint64_t>(vector);
  if (!aligned) result.alignment = element * static_cast<std::uint64_t>(vector);
  if (accept('=')) initializer(result, bits);
  return result;
}

void Parser::initializer(Variable& variable, int element_bits) {
  const std::size_t element = static_cast<std::size_t>(element_bits) / 8;
  const auto value = [&] {
    std::uint64_t bits = 0;
    const bool minus = accept('-');
    if (token_.kind == TokenKind::kInteger) {
      bits = minus ? 0 - token_.bits : token_.bits;
    } else if (token_.kind == TokenKind::kFloat) {
      double real = std::bit_cast<double>(token_.bits);
      if (minus) real = -real;
      bits = element == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(real))
                          : std::bit_cast<std::uint64_t>(real);
    } else if (token_.kind == TokenKind::kName && element == 8 && !minus) {
      return variable.relocations.push_back(relocation(variable));
    } else {
      fail("only numbers and addresses are supported in an initializer");
    }
    advance();
    for (std::size_t i = 0; i < element; ++i) {
      variable.initial.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
    }
  };
  int depth = 0;
  do {
    while (accept('{')) ++depth;
    if (!token_.is('}')) value();
    while (depth > 0 && accept('}')) --depth;
  } while (depth > 0 && accept(','));
  if (depth != 0) fail("expected '}'");
  if (variable.bytes == 0) variable.bytes = variable.initial.size();
  if (variable.initial.size() > variable.bytes) fail("more initial values than elements");
  variable.initial.resize(variable.bytes);
}

// name [+ N], or generic(name) [+ N]: global and constant memory lie at their generic addresses.
Relocation Parser::relocation(Variable& variable) {
  Relocation result;
  result.offset = variable.initial.size();
  result.symbol = name();
  if (result.symbol == "generic" && accept('(')) {
    result.symbol = name();
    expect(')');
  }
  if (accept('+')) result.addend = integer();
  variable.initial.resize(variable.initial.size() + 8);
  return result;
}

std::vector<Variable> Parser::parameters() {
  std::vector<Variable> result;
  if (!accept('(')) return result;
  while (!token_.is(')')) {
    if (token_.is(".reg")) {
      fail("parameters in registers are not supported; use .param");
    }
    if (!token_.is(".param")) fail("expected .param");
    advance();
    result.push_back(variable(Space::kParam, false));
    if (!accept(',')) break;
  }
  expect(')');
  return result;
}

void Parser::function(bool entry, bool external) {
  Function function;
  function.entry = entry;
  function.line = token_.line;
  if (!entry) function.results = parameters();
  function.name = name();
  function.parameters = parameters();
  while (token_.kind == TokenKind::kDirective) {
    if (token_.is(".maxntid") || token_.is(".reqntid")) {
      advance();
      std::uint64_t product = integer();
      while (accept(',')) product *= integer();
      function.max_threads = static_cast<std::uint32_t>(product);
    } else if (token_.is(".minnctapersm") || token_.is(".maxnreg") ||
               token_.is(".maxclusterrank")) {
      advance();
      integer();
    } else if (token_.is(".noreturn") || token_.is(".explicitcluster")) {
      advance();
    } else if (token_.is(".reqnctapercluster")) {
      advance();
      do {
        integer();
      } while (accept(','));
    } else if (token_.is(".pragma")) {
      skip_to_semicolon();
    } else {
      base::fail(ErrorCode::kUnsupported, "PTX line {}: directive '{}' of a function", token_.line,
                 token_.text);
    }
  }
  function.declaration = external || token_.is(';');
  if (accept(';')) {
    module_.functions.push_back(std::move(function));
    return;
  }
  function.declaration = false;
  function_ = &function;
  location_ = -1;
  scopes_.assign(1, {});
  scope_names_.assign(1, "");
  labels_.clear();
  tables_.clear();
  last_label_.clear();
  placed_labels_.clear();
  expect('{');
  body();
  expect('}');
  for (std::size_t i = 0; i < function.labels.size(); ++i) {
    if (!placed_labels_.contains(static_cast<std::int32_t>(i))) {
      fail("label '" + function.labels[i].name + "' is used but not defined");
    }
  }
  function_ = nullptr;
  module_.functions.push_back(std::move(function));
}

void Parser::body() {
  while (!token_.is('}')) {
    if (token_.kind == TokenKind::kEnd) fail("the function is not closed");
    if (accept('{')) {
      if (scopes_.size() > 64) fail("blocks nest too deep");
      scopes_.emplace_back();
      scope_names_.push_back(fmt::format("{}#{}", scope_names_.back(), ++scope_counter_));
      body();
      expect('}');
      scopes_.pop_back();
      scope_names_.pop_back();
    } else if (accept(';')) {
    } else if (token_.is(".reg")) {
      registers();
    } else if (token_.is(".loc")) {
      location_directive();
    } else if (token_.is(".file")) {
      file_directive();
    } else if (token_.is(".pragma")) {
      skip_to_semicolon();
    } else if (const auto space = space_of(token_.text);
               space && token_.kind == TokenKind::kDirective) {
      advance();
      do {
        Variable declared = variable(*space, false);
        if (*space == Space::kGlobal || *space == Space::kConst) {
          module_.variables.push_back(std::move(declared));
        } else {
          function_->variables.push_back(std::move(declared));
        }
      } while (accept(','));
      expect(';');
    } else if (token_.kind == TokenKind::kName && peek().is(':')) {
      last_label_ = token_.text;
      const std::int32_t index = label(scoped(last_label_));
      if (!placed_labels_.insert(index).second) fail("this label is there twice");
      function_->labels[static_cast<std::size_t>(index)].target =
          static_cast<std::uint32_t>(function_->code.size());
      advance();
      advance();
    } else if (token_.is(".branchtargets")) {
      branch_targets();
    } else if (token_.kind == TokenKind::kDirective) {
      base::fail(ErrorCode::kUnsupported, "PTX line {}: directive '{}'", token_.line, token_.text);
    } else {
      instruction();
    }
  }
}

// .reg .b32 %r<10>, %x;
void Parser::registers() {
  advance();
  if (token_.kind != TokenKind::kDirective) fail("expected a type");
  const std::string type(token_.text.substr(1));
  const int bits = type_bits(type);
  if (bits == 0) fail("unknown type");
  advance();
  do {
    const std::string stem = name();
    if (accept('<')) {
      const std::uint64_t count = integer();
      expect('>');
      if (count > 100000 || function_->registers.size() + count > 1000000) {
        fail("too many registers");
      }
      for (std::uint64_t i = 0; i < count; ++i) {
        scopes_.back()[stem + std::to_string(i)] =
            static_cast<std::int32_t>(function_->registers.size());
        function_->registers.push_back({stem + std::to_string(i), type, bits});
      }
    } else {
      scopes_.back()[stem] = static_cast<std::int32_t>(function_->registers.size());
      function_->registers.push_back({stem, type, bits});
    }
  } while (accept(','));
  expect(';');
}

void Parser::instruction() {
  Instruction result;
  result.line = token_.line;
  result.location = location_;
  if (accept('@')) {
    result.guard_negated = accept('!');
    const std::string guard = name();
    result.guard = find_register(guard);
    if (result.guard < 0) fail("unknown predicate '" + guard + "'");
  }
  std::string_view text = token_.text;
  if (token_.kind != TokenKind::kName) fail("expected an instruction");
  while (true) {
    const std::size_t point = text.find('.');
    const std::string part(text.substr(0, point));
    if (result.opcode.empty()) {
      result.opcode = part;
    } else {
      result.modifiers.push_back(part);
    }
    if (point == std::string_view::npos) break;
    text.remove_prefix(point + 1);
  }
  result.line = token_.line;
  advance();
  while (!token_.is(';')) {
    result.operands.push_back(operand());
    if (!accept(',')) break;
  }
  if (result.opcode == "bra") {
    if (result.operands.size() != 1 || result.operands[0].kind != OperandKind::kSymbol) {
      fail("bra needs a label");
    }
    result.operands[0].kind = OperandKind::kLabel;
    result.operands[0].label = target(result.operands[0].text);
  }
  if (!accept(';')) fail("expected ';'");
  if (result.opcode == "brx") return indexed_branch(result);
  function_->code.push_back(std::move(result));
}

// A label of an enclosing block may be meant; labels are unique per function in practice, so the
// innermost block that ends up defining the name wins.
std::int32_t Parser::target(const std::string& text) {
  for (std::size_t depth = scope_names_.size(); depth-- > 0;) {
    const std::string candidate = text + scope_names_[depth];
    if (labels_.contains(candidate)) return label(candidate);
  }
  return label(scoped(text));
}

// LABEL: .branchtargets A, B, C;
void Parser::branch_targets() {
  if (last_label_.empty()) fail("a table of targets needs a label");
  advance();
  std::vector<std::string> names;
  do {
    names.push_back(name());
  } while (accept(','));
  expect(';');
  tables_[std::exchange(last_label_, {})] = std::move(names);
}

// brx.idx r, TABLE becomes a comparison and a branch per target; an index beyond them, which is
// undefined, a trap.
void Parser::indexed_branch(const Instruction& branch) {
  const auto table =
      branch.operands.size() == 2 ? tables_.find(branch.operands[1].text) : tables_.end();
  if (table == tables_.end()) fail("brx.idx needs a register and a table of targets before it");
  if (branch.guard >= 0) fail("brx.idx with a predicate is not supported");
  const auto predicate = static_cast<std::int32_t>(function_->registers.size());
  function_->registers.push_back({"brx.idx", "pred", 1});
  Instruction part;
  part.line = branch.line;
  part.location = branch.location;
  for (std::size_t i = 0; i < table->second.size(); ++i) {
    Operand hit;
    hit.kind = OperandKind::kRegister;
    hit.reg = predicate;
    Operand number;
    number.kind = OperandKind::kImmediate;
    number.bits = i;
    Instruction compare = part;
    compare.opcode = "setp";
    compare.modifiers = {"eq", "u32"};
    compare.operands = {hit, branch.operands[0], number};
    function_->code.push_back(std::move(compare));
    Operand there;
    there.kind = OperandKind::kLabel;
    there.text = table->second[i];
    there.label = target(there.text);
    Instruction jump = part;
    jump.opcode = "bra";
    jump.operands = {there};
    jump.guard = predicate;
    function_->code.push_back(std::move(jump));
  }
  part.opcode = "trap";
  function_->code.push_back(std::move(part));
}

Operand Parser::operand() {
  Operand first = single_operand();
  if (!token_.is('|')) return first;
  Operand pair;
  pair.kind = OperandKind::kPair;
  pair.elements.push_back(std::move(first));
  while (accept('|')) pair.elements.push_back(single_operand());
  return pair;
}

Operand Parser::single_operand() {
  Operand result;
  if (token_.is('{') || token_.is('(')) {
    const char close = token_.is('{') ? '}' : ')';
    result.kind = close == '}' ? OperandKind::kVector : OperandKind::kList;
    advance();
    while (!token_.is(close)) {
      result.elements.push_back(single_operand());
      if (!accept(',')) break;
    }
    expect(close);
    return result;
  }
  if (token_.is('[')) return address();
  if (accept('!')) {
    result = single_operand();
    result.negated = !result.negated;
    return result;
  }
  const bool minus = accept('-');
  if (token_.kind == TokenKind::kInteger || token_.kind == TokenKind::kFloat) {
    result.kind = OperandKind::kImmediate;
    result.is_float = token_.kind == TokenKind::kFloat;
    result.bits = token_.bits;
    if (minus) result.bits = result.is_float ? result.bits ^ (1ull << 63) : 0 - result.bits;
    advance();
    return result;
  }
  if (minus) fail("expected a number");
  const std::string text = name();
  if (text == "_") return result;
  if (text == "WARP_SZ") {
    result.kind = OperandKind::kImmediate;
    result.bits = 32;
    return result;
  }
  if (const std::int32_t reg = find_register(text); reg >= 0) {
    result.kind = OperandKind::kRegister;
    result.reg = reg;
    return result;
  }
  if (text[0] == '%') {
    result.kind = OperandKind::kSpecial;
    result.text = text;
    return result;
  }
  result.kind = OperandKind::kSymbol;
  result.text = text;
  if (accept('+')) result.offset = static_cast<std::int64_t>(integer());
  return result;
}

Operand Parser::address() {
  expect('[');
  Operand result;
  result.kind = OperandKind::kAddress;
  if (token_.kind == TokenKind::kInteger || token_.is('-')) {
    result.offset = static_cast<std::int64_t>(integer());
  } else {
    const std::string text = name();
    result.reg = find_register(text);
    if (result.reg < 0) {
      if (text[0] == '%') fail("unknown register '" + text + "'");
      result.text = text;
    }
  }
  while (token_.is('+') || token_.is('-')) {
    const bool minus = token_.is('-');
    advance();
    const auto value = static_cast<std::int64_t>(integer());
    result.offset += minus ? -value : value;
  }
  if (accept(',')) {  // [tensorMap, {c0, c1}]: coordinates become elements
    result.elements.push_back(single_operand());
  }
  expect(']');
  return result;
}

std::int32_t Parser::find_register(std::string_view text) const {
  for (std::size_t depth = scopes_.size(); depth-- > 0;) {
    if (const auto found = scopes_[depth].find(text); found != scopes_[depth].end()) {
      return found->second;
    }
  }
  return -1;
}

std::string Parser::scoped(const std::string& text) const { return text + scope_names_.back(); }

std::int32_t Parser::label(const std::string& text) {
  const auto [place, fresh] =
      labels_.emplace(text, static_cast<std::int32_t>(function_->labels.size()));
  if (fresh) function_->labels.push_back({text, 0});
  return place->second;
}

}  // namespace

Module parse(std::string_view text) { return Parser(text).run(); }

}  // namespace annulus::ptx
