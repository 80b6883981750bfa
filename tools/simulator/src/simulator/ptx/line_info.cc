#include "simulator/ptx/line_info.h"

#include <string>

namespace annulus::ptx {
namespace {

// Parses FILE LINE COLUMN.
Location parse_place(TokenStream& tokens) {
  Location place;
  place.file = static_cast<int>(tokens.integer());
  place.line = static_cast<int>(tokens.integer());
  tokens.integer();
  return place;
}

int append(Module& module, const Location& location) {
  module.locations.push_back(location);
  return static_cast<int>(module.locations.size()) - 1;
}

// The index of the outer place. If several directives name that line, the last one is used, because
// it states where the outer place was inlined itself.
int find_or_append(Module& module, const Location& outer) {
  for (std::size_t i = module.locations.size(); i-- > 0;) {
    const Location& known = module.locations[i];
    if (known.file == outer.file && known.line == outer.line) return static_cast<int>(i);
  }
  return append(module, outer);
}

}  // namespace

void parse_file(TokenStream& tokens, Module& module) {
  tokens.expect(".file");
  const int number = static_cast<int>(tokens.integer());
  if (!tokens.is(TokenKind::kString)) tokens.fail("expected a file name");
  module.files.emplace_back(number, std::string(tokens.current().text));
  tokens.advance();
  while (tokens.accept(',')) tokens.integer();
}

// .loc FILE LINE COLUMN [, function_name LABEL [+ OFFSET], inlined_at FILE LINE COLUMN]
int parse_location(TokenStream& tokens, Module& module) {
  tokens.expect(".loc");
  Location location = parse_place(tokens);
  if (tokens.accept(',')) {
    tokens.expect("function_name");
    tokens.name();
    if (tokens.accept('+')) tokens.integer();
    tokens.expect(',');
    tokens.expect("inlined_at");
    location.inlined_at = find_or_append(module, parse_place(tokens));
  }
  return append(module, location);
}

}  // namespace annulus::ptx
