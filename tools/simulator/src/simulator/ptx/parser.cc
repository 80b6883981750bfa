#include "simulator/ptx/parser.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "simulator/ptx/declaration.h"
#include "simulator/ptx/function_body.h"
#include "simulator/ptx/indirect_calls.h"
#include "simulator/ptx/line_info.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {
namespace {

void parse_version(TokenStream& tokens, Module& module) {
  if (!tokens.is(TokenKind::kFloat)) tokens.fail("expected a version such as 9.0");
  const double version = std::bit_cast<double>(tokens.current().bits);
  if (!(version < 100)) tokens.fail("no such version");
  module.version_major = static_cast<int>(version);
  module.version_minor = static_cast<int>((version - module.version_major) * 10 + 0.5);
  tokens.advance();
}

void skip_section(TokenStream& tokens) {
  while (!tokens.is('{') && !tokens.is(TokenKind::kEnd)) tokens.advance();
  while (!tokens.is('}') && !tokens.is(TokenKind::kEnd)) tokens.advance();
  tokens.expect('}');
}

// Parses a number of threads, registers or CTAs, which is at least one. ptxas refuses zero too.
std::uint32_t parse_count(TokenStream& tokens, std::string_view directive) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t count = tokens.integer();
  if (count == 0 || count > kMax) {
    tokens.fail(
        fmt::format("{} of {}; it has to be a number from 1 to {}", directive, count, kMax));
  }
  return static_cast<std::uint32_t>(count);
}

// Parses .maxntid 128, 1, 1 and the like, which come between the parameters of a function and its
// body. A number of threads that no block can have is stored as the largest number.
void parse_performance_directives(TokenStream& tokens, Function& function) {
  while (tokens.is(TokenKind::kDirective)) {
    const std::string_view directive = tokens.current().text;
    if (tokens.accept(".maxntid") || tokens.accept(".reqntid")) {
      std::uint64_t product = 1;
      do {
        product = std::min<std::uint64_t>(product * parse_count(tokens, directive),
                                          std::numeric_limits<std::int32_t>::max());
      } while (tokens.accept(','));
      function.max_threads = static_cast<std::uint32_t>(product);
    } else if (tokens.accept(".maxnreg")) {
      function.max_registers = parse_count(tokens, directive);
    } else if (tokens.accept(".minnctapersm")) {
      function.min_ctas = parse_count(tokens, directive);
    } else if (tokens.accept(".maxclusterrank")) {
      tokens.integer();
    } else if (tokens.accept(".noreturn") || tokens.accept(".explicitcluster")) {
    } else if (tokens.accept(".reqnctapercluster")) {
      std::fill(std::begin(function.cluster), std::end(function.cluster), 1u);
      std::size_t dimension = 0;
      do {
        if (dimension == 3) tokens.fail("a cluster has three dimensions");
        function.cluster[dimension++] = static_cast<std::uint32_t>(tokens.integer());
      } while (tokens.accept(','));
    } else if (tokens.is(".pragma")) {
      tokens.skip_to_semicolon();
    } else {
      tokens.unsupported(
          fmt::format("directive '{}' of a function is not supported", tokens.current().text));
    }
  }
}

Function parse_function(TokenStream& tokens, Module& module, bool entry) {
  Function function;
  function.entry = entry;
  function.line = tokens.current().line;
  if (!entry) function.results = parse_parameters(tokens);
  function.name = tokens.name();
  function.parameters = parse_parameters(tokens);
  parse_performance_directives(tokens, function);
  function.declaration = tokens.accept(';');
  if (!function.declaration) parse_function_body(tokens, module, function);
  return function;
}

// [.visible | .extern | .weak | .common]..., and then a function or variables.
void parse_linked(TokenStream& tokens, Module& module) {
  bool external = false;
  while (tokens.is(".visible") || tokens.is(".extern") || tokens.is(".weak") ||
         tokens.is(".common")) {
    external |= tokens.is(".extern");
    tokens.advance();
  }
  const bool entry = tokens.accept(".entry");
  if (entry || tokens.accept(".func")) {
    module.functions.push_back(parse_function(tokens, module, entry));
    return;
  }
  const auto space = space_of(tokens.current().text);
  if (!space || *space == Space::kParam) tokens.fail("expected a directive");
  tokens.advance();
  std::vector<Variable> declared = parse_variables(tokens, *space, external);
  std::move(declared.begin(), declared.end(), std::back_inserter(module.variables));
}

}  // namespace

Module parse(std::string_view text) {
  TokenStream tokens(text);
  Module module;
  while (!tokens.is(TokenKind::kEnd)) {
    if (tokens.accept(".version")) {
      parse_version(tokens, module);
    } else if (tokens.accept(".target")) {
      module.target = tokens.name();
      while (tokens.accept(',')) tokens.name();
    } else if (tokens.accept(".address_size")) {
      if (tokens.integer() != 64) tokens.fail("only 64-bit addresses are supported");
    } else if (tokens.is(".file")) {
      parse_file(tokens, module);
    } else if (tokens.is(".section")) {
      skip_section(tokens);
    } else if (tokens.is(".pragma")) {
      tokens.skip_to_semicolon();
    } else {
      parse_linked(tokens, module);
    }
  }
  expand_indirect_calls(module);
  return module;
}

}  // namespace annulus::ptx
