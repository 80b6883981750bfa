#include <fmt/format.h>

#include <iterator>

#include "annulus/pattern.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
namespace {

using pattern::Kind;
using pattern::Node;

// How tightly a node holds together: a child that holds less than its parent needs parentheses.
int strength(const Node& node) {
  switch (node.kind) {
    case Kind::kOr:
      return 0;
    case Kind::kAnd:
      return 1;
    default:
      return 2;
  }
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  return text + '"';
}

void print(const Node& node, std::string* text) {
  const auto out = std::back_inserter(*text);
  const auto child = [&](const Node& inner) {
    const bool parentheses = strength(inner) < strength(node);
    if (parentheses) text->push_back('(');
    print(inner, text);
    if (parentheses) text->push_back(')');
  };
  switch (node.kind) {
    case Kind::kDense:
      *text += "dense";
      break;
    case Kind::kCausal:
      *text += "causal";
      break;
    case Kind::kWindow:
      fmt::format_to(out, "window({}, {})", node.first, node.second);
      break;
    case Kind::kSink:
      fmt::format_to(out, "sink({})", node.first);
      break;
    case Kind::kGlobalFirst:
      fmt::format_to(out, "global({})", node.first);
      break;
    case Kind::kGlobalListed:
      fmt::format_to(out, "global([{}])", fmt::join(node.list, ", "));
      break;
    case Kind::kDocuments:
      fmt::format_to(out, "documents([{}])", fmt::join(node.list, ", "));
      break;
    case Kind::kBlocks:
      fmt::format_to(out, "blocks({})", quoted(node.name));
      break;
    case Kind::kNot:
      text->push_back('~');
      child(*node.children.front());
      break;
    case Kind::kAnd:
    case Kind::kOr:
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        if (i > 0) *text += node.kind == Kind::kAnd ? " & " : " | ";
        child(*node.children[i]);
      }
      break;
  }
}

}  // namespace

std::string Pattern::to_string() const {
  std::string text;
  print(*node_, &text);
  return text;
}

}  // namespace annulus::inline v0
