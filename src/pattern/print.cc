#include <fmt/core.h>

#include <iterator>

#include "annulus/pattern.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
namespace {

using pattern::Kind;
using pattern::Node;

// The precedence of a node: a child with a lower precedence than its parent needs parentheses.
int strength(const Node& node) {
  if (node.kind == Kind::kOr) return 0;
  return node.kind == Kind::kAnd ? 1 : 2;
}

// Appends a text that parses to an equal tree, with parentheses only if precedence needs them.
void print(const Node& node, std::string* text) {
  const auto out = std::back_inserter(*text);
  const auto child = [&](const Node& inner) {
    const bool parentheses = strength(inner) < strength(node);
    if (parentheses) text->push_back('(');
    print(inner, text);
    if (parentheses) text->push_back(')');
  };
  switch (node.kind) {
    case Kind::kLeaf:
      std::visit([&](const auto& leaf) { leaf.print(text); }, node.leaf);
      break;
    case Kind::kHierarchical:
      *text += "hierarchical([";
      for (const auto& level : node.children) {
        const auto& band = std::get<pattern::leaves::Band>(level->leaf);
        fmt::format_to(out, "{}({}, {}, {})", level == node.children.front() ? "" : ", ",
                       band.stride, band.window, band.block);
      }
      *text += "])";
      break;
    case Kind::kHeads:
    case Kind::kBatches:
    case Kind::kSum:
      if (node.group > 1) {
        fmt::format_to(out, "head_groups({}, ", node.group);
      } else {
        *text += node.kind == Kind::kHeads     ? "heads("
                 : node.kind == Kind::kBatches ? "batches("
                                               : "sum(";
      }
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        if (i > 0) *text += ", ";
        print(*node.children[i], text);
      }
      text->push_back(')');
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
