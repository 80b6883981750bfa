#include "jit/spec.h"

#include <algorithm>
#include <string_view>

#include "base/fail.h"

namespace annulus::jit {
namespace {

constexpr std::string_view kNamespace = "annulus::kernels";
constexpr std::size_t kMaxExpression = 1 << 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  base::fail(ErrorCode::kInvalidArgument, "a kernel cannot be specialised: {} '{}'", what, text);
}

void require_identifier(std::string_view text) {
  const bool valid = !text.empty() && !is_digit(text.front()) &&
                     std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
  if (!valid) refuse("not an identifier:", text);
}

// Throws unless the text consists of names, template arguments and numbers, as the name of a type
// or a kernel does.
void require_type(std::string_view text) {
  const bool valid = !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view(":<>, ").find(c) != std::string_view::npos;
  });
  if (!valid) refuse("not a type or a kernel:", text);
}

// Throws unless the text is one line of code that cannot end the construct around it: it has no
// directive, string, comment, statement or block, and its parentheses match.
void require_code(std::string_view what, std::string_view text) {
  if (text.empty() || text.size() > kMaxExpression) refuse(what, text.substr(0, 100));
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool letter = is_letter(c) || is_digit(c);
    if (!letter && std::string_view(" ():,.<>=!&|^~+-*/%?[]").find(c) == std::string_view::npos) {
      refuse(what, text);
    }
    if (c == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) {
      refuse(what, text);
    }
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth < 0) refuse(what, text);
  }
  if (depth != 0 || text.find("asm") != std::string_view::npos) refuse(what, text);
}

// Replaces each "[&](const auto& m) { return E; }", the only statement that expressions may have,
// by "(E)". The result is one line of code, or is refused.
std::string lambdas_as_parentheses(std::string text) {
  constexpr std::string_view kBegin = "[&](const auto& m) { return ", kEnd = "; }";
  for (auto at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    text.replace(at, kBegin.size(), "(");
  }
  for (auto at = text.find(kEnd); at != text.npos; at = text.find(kEnd, at)) {
    text.replace(at, kEnd.size(), ")");
  }
  return text;
}

const char* opening(Constant::Kind kind) {
  return kind == Constant::Kind::kInteger ? "enum : int { " : "enum : bool { ";
}

// Adjacent constants of one kind share an enumeration.
std::string constants_text(const std::vector<Constant>& constants) {
  std::string text;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Constant& constant = constants[i];
    require_identifier(constant.name);
    require_type(constant.value.starts_with('-') ? std::string_view(constant.value).substr(1)
                                                 : std::string_view(constant.value));
    if (constant.kind == Constant::Kind::kType) {
      text += fmt::format("  using {} = {};\n", constant.name, constant.value);
      continue;
    }
    const bool first = i == 0 || constants[i - 1].kind != constant.kind;
    const bool last = i + 1 == constants.size() || constants[i + 1].kind != constant.kind;
    text += fmt::format("{}{} = {}{}", first ? std::string("  ") + opening(constant.kind) : "",
                        constant.name, constant.value, last ? " };\n" : ", ");
  }
  return text;
}

// For "template <typename M> bool f(...)", the template head stays before the qualifiers.
std::string function_text(const Function& function) {
  require_code("not the declaration of a function:", function.declaration);
  require_code("not an expression:", lambdas_as_parentheses(function.expression));
  std::string_view declaration = function.declaration;
  std::string head;
  if (declaration.starts_with("template <")) {
    const std::size_t close = declaration.find("> ");
    if (close == std::string_view::npos) refuse("not the declaration of a function:", declaration);
    head = fmt::format("  {}\n", declaration.substr(0, close + 1));
    declaration.remove_prefix(close + 2);
  }
  return fmt::format("{}  __device__ __forceinline__ static {} {{\n    return {};\n  }}\n", head,
                     declaration, function.expression);
}

}  // namespace

Constant Constant::integer(std::string name, std::int64_t value) {
  return {Kind::kInteger, std::move(name), std::to_string(value)};
}
Constant Constant::boolean(std::string name, bool value) {
  return {Kind::kBoolean, std::move(name), value ? "true" : "false"};
}
Constant Constant::type(std::string name, std::string value) {
  return {Kind::kType, std::move(name), std::move(value)};
}

std::string qualified_entry(const KernelSpec& spec) {
  require_identifier(spec.entry);
  std::string text = fmt::format("{}::{}", kNamespace, spec.entry);
  for (std::size_t i = 0; i < spec.structs.size(); ++i) {
    text += fmt::format("{}{}::{}", i == 0 ? "<" : ", ", kNamespace, spec.structs[i].name);
  }
  return spec.structs.empty() ? text : text + ">";
}

std::string source_text(const KernelSpec& spec) {
  require_identifier(spec.family);
  require_identifier(spec.entry);
  require_code("not the name of a template:", spec.file);
  std::string text = fmt::format("// {} for {}\n", spec.family, to_string(spec.arch));
  for (const std::string& define : spec.defines) {
    require_identifier(define);
    text += fmt::format("#define {} 1\n", define);
  }
  text += fmt::format("#include \"{}\"\n", spec.file);
  if (spec.structs.empty()) return text;
  text += fmt::format("\nnamespace {} {{\n", kNamespace);
  std::string arguments;
  for (const Struct& part : spec.structs) {
    require_identifier(part.name);
    text += fmt::format("struct {} {{\n{}", part.name, constants_text(part.constants));
    for (const Function& function : part.functions) text += function_text(function);
    text += "};\n";
    arguments += (arguments.empty() ? "" : ", ") + part.name;
  }
  text += fmt::format("template __global__ decltype({0}<{1}>) {0}<{1}>;\n}}  // namespace {2}\n",
                      spec.entry, arguments, kNamespace);
  return text;
}

}  // namespace annulus::jit
