#include "simulator/ptx/function_body.h"

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "simulator/ptx/declaration.h"
#include "simulator/ptx/line_info.h"
#include "simulator/ptx/operand.h"
#include "simulator/ptx/scopes.h"

namespace annulus::ptx {
namespace {

constexpr int kMaxBlockDepth = 64;
constexpr std::uint64_t kMaxRegistersAtOnce = 100000;
constexpr std::uint64_t kMaxRegisters = 1000000;

class BodyParser {
 public:
  BodyParser(TokenStream& tokens, Module& module, Function& function)
      : tokens_(tokens), module_(module), function_(function), scopes_(function) {}

  void run() {
    block();
    for (const Jump& jump : jumps_) resolve(jump);
  }

 private:
  struct Jump {  // an instruction whose first operand is a label, and its block
    std::size_t instruction;
    int block;
  };

  void block();
  void statement();
  void registers();
  void variables(Space space);
  void label();
  void pragma();
  void branch_targets();
  void instruction();
  void append_jump(Instruction jump);
  void indexed_branch(const Instruction& branch);
  void resolve(const Jump& jump);

  TokenStream& tokens_;
  Module& module_;
  Function& function_;
  Scopes scopes_;
  int location_ = -1;
  std::uint32_t used_bytes_ = ~0u;  // the mask of the next instruction
  std::vector<Jump> jumps_;
  std::string last_label_;
  std::map<std::string, std::vector<std::string>, std::less<>>
      tables_;  // targets of brx.idx, by the label of the table
};

void BodyParser::block() {
  tokens_.expect('{');
  while (!tokens_.accept('}')) {
    if (tokens_.is(TokenKind::kEnd)) tokens_.fail("the function is not closed");
    if (!tokens_.is('{')) {
      statement();
      continue;
    }
    if (scopes_.depth() >= kMaxBlockDepth) tokens_.fail("blocks nest too deep");
    scopes_.open();
    block();
    scopes_.close();
  }
}

void BodyParser::statement() {
  if (tokens_.accept(';')) return;
  if (tokens_.is(TokenKind::kName) && tokens_.peek().is(':')) return label();
  if (!tokens_.is(TokenKind::kDirective)) return instruction();
  if (tokens_.is(".reg")) return registers();
  if (tokens_.is(".file")) return parse_file(tokens_, module_);
  if (tokens_.is(".pragma")) return pragma();
  if (tokens_.is(".branchtargets")) return branch_targets();
  // The possible targets of a call through a register follow from its operands (indirect_calls.h).
  if (tokens_.is(".callprototype") || tokens_.is(".calltargets")) {
    return tokens_.skip_to_semicolon();
  }
  if (tokens_.is(".loc")) {
    location_ = parse_location(tokens_, module_);
  } else if (const auto space = space_of(tokens_.current().text)) {
    variables(*space);
  } else {
    tokens_.unsupported(fmt::format("directive '{}'", tokens_.current().text));
  }
}

// .reg .b32 %r<10>, %x;
void BodyParser::registers() {
  tokens_.advance();
  if (!tokens_.is(TokenKind::kDirective)) tokens_.fail("expected a type");
  const std::string type(tokens_.current().text.substr(1));
  const int bits = type_bits(type);
  if (bits == 0) tokens_.fail("unknown type");
  tokens_.advance();
  do {
    const std::string stem = tokens_.name();
    if (!tokens_.accept('<')) {
      scopes_.declare_register(stem, type, bits);
      continue;
    }
    const std::uint64_t count = tokens_.integer();
    tokens_.expect('>');
    if (count > kMaxRegistersAtOnce || function_.registers.size() + count > kMaxRegisters) {
      tokens_.fail("too many registers");
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      scopes_.declare_register(stem + std::to_string(i), type, bits);
    }
  } while (tokens_.accept(','));
  tokens_.expect(';');
}

void BodyParser::variables(Space space) {
  tokens_.advance();
  for (Variable& variable : parse_variables(tokens_, space, false)) {
    if (space == Space::kGlobal || space == Space::kConst) {
      module_.variables.push_back(std::move(variable));
    } else {
      scopes_.declare_variable(std::move(variable), module_.functions.size());
    }
  }
}

void BodyParser::label() {
  last_label_ = tokens_.current().text;
  if (!scopes_.place_label(last_label_)) tokens_.fail("this block has two labels of this name");
  tokens_.advance();
  tokens_.expect(':');
}

// .pragma "used_bytes_mask 0xfff"; It marks which bytes of the next load are used (PTX ISA 9.0,
// section 12.4). Compilers join loads of neighbouring addresses, and the bytes in between may be
// outside of all allocations. Other pragmas are hints for compilers.
void BodyParser::pragma() {
  constexpr std::string_view kUsed = "used_bytes_mask";
  tokens_.advance();
  std::string_view text = tokens_.current().text;
  if (tokens_.is(TokenKind::kString) && text.starts_with(kUsed)) {
    text.remove_prefix(kUsed.size());
    while (text.starts_with(' ')) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), used_bytes_, hexadecimal ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size()) {
      tokens_.fail("a mask of used bytes has to be a number of 32 bits");
    }
  }
  tokens_.skip_to_semicolon();
}

// LABEL: .branchtargets A, B, C;
void BodyParser::branch_targets() {
  if (last_label_.empty()) tokens_.fail("a table of targets needs a label");
  tokens_.advance();
  std::vector<std::string> names;
  do {
    names.push_back(tokens_.name());
  } while (tokens_.accept(','));
  tokens_.expect(';');
  tables_[std::exchange(last_label_, {})] = std::move(names);
}

// [@[!]p] opcode.modifier... a, b, c;
void BodyParser::instruction() {
  Instruction result;
  result.location = location_;
  if (tokens_.accept('@')) {
    result.guard_negated = tokens_.accept('!');
    const std::string guard = tokens_.name();
    result.guard = scopes_.find_register(guard);
    if (result.guard < 0) tokens_.fail("unknown predicate '" + guard + "'");
  }
  result.line = tokens_.current().line;
  result.used_bytes = std::exchange(used_bytes_, ~0u);
  if (!tokens_.is(TokenKind::kName)) tokens_.fail("expected an instruction");
  std::string_view text = tokens_.current().text;
  std::size_t point = text.find('.');
  result.opcode = text.substr(0, point);
  while (point != std::string_view::npos) {
    text.remove_prefix(point + 1);
    point = text.find('.');
    result.modifiers.emplace_back(text.substr(0, point));
  }
  tokens_.advance();
  while (!tokens_.is(';')) {
    result.operands.push_back(parse_operand(tokens_, scopes_));
    if (!tokens_.accept(',')) break;
  }
  if (result.opcode == "bra" &&
      (result.operands.size() != 1 || result.operands[0].kind != OperandKind::kSymbol)) {
    tokens_.fail("bra needs a label");
  }
  tokens_.expect(';');
  if (result.opcode == "bra") return append_jump(std::move(result));
  if (result.opcode == "brx") return indexed_branch(result);
  function_.code.push_back(std::move(result));
}

void BodyParser::append_jump(Instruction jump) {
  jump.operands[0].kind = OperandKind::kLabel;
  jumps_.push_back({function_.code.size(), scopes_.block()});
  function_.code.push_back(std::move(jump));
}

// brx.idx r, TABLE becomes a comparison and a branch for each target. An index beyond the table is
// undefined in PTX; here it becomes a trap.
void BodyParser::indexed_branch(const Instruction& branch) {
  const auto table =
      branch.operands.size() == 2 ? tables_.find(branch.operands[1].text) : tables_.end();
  if (table == tables_.end()) {
    tokens_.fail("brx.idx needs a register and a table of targets before it");
  }
  if (branch.guard >= 0) tokens_.fail("brx.idx with a predicate is not supported");
  Operand hit;
  hit.kind = OperandKind::kRegister;
  hit.reg = static_cast<std::int32_t>(function_.registers.size());
  function_.registers.push_back({"brx.idx", "pred", 1});
  Instruction part;
  part.line = branch.line;
  part.location = branch.location;
  for (std::size_t i = 0; i < table->second.size(); ++i) {
    Operand number;
    number.kind = OperandKind::kImmediate;
    number.bits = i;
    Instruction compare = part;
    compare.opcode = "setp";
    compare.modifiers = {"eq", "u32"};
    compare.operands = {hit, branch.operands[0], number};
    function_.code.push_back(std::move(compare));
    Instruction jump = part;
    jump.opcode = "bra";
    jump.operands.emplace_back().text = table->second[i];
    jump.guard = hit.reg;
    append_jump(std::move(jump));
  }
  part.opcode = "trap";
  function_.code.push_back(std::move(part));
}

void BodyParser::resolve(const Jump& jump) {
  Instruction& branch = function_.code[jump.instruction];
  Operand& target = branch.operands[0];
  target.label = scopes_.find_label(target.text, jump.block);
  if (target.label < 0) {
    base::fail(ErrorCode::kParse, "PTX line {}: label '{}' is used but not defined", branch.line,
               target.text);
  }
}

}  // namespace

void parse_function_body(TokenStream& tokens, Module& module, Function& function) {
  BodyParser(tokens, module, function).run();
}

}  // namespace annulus::ptx
