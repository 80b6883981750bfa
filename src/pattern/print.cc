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

std::string in_quotes(std::string_view name) {
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
      fmt::format_to(out, "blocks({})", in_quotes(node.name));
      break;
    case Kind::kBand:
      if (node.third == 1) {
        fmt::format_to(out, "dilated({})", node.first);
      } else {
        fmt::format_to(out, "block_dilated({}, {})", node.first, node.third);
      }
      break;
    case Kind::kStrided:
      fmt::format_to(out, "strided({}, {}, {})", node.first, node.second, node.third);
      break;
    case Kind::kRandom:
      fmt::format_to(out, "random({}, {}, {})", node.first, node.second, node.third);
      break;
    case Kind::kSegment:
      fmt::format_to(out, "segment({}, {})", node.first, node.second);
      break;
    case Kind::kAxial:
      fmt::format_to(out, "axial({}, {})", node.first, node.second);
      break;
    case Kind::kNatten:
      fmt::format_to(out, "natten({}, {}, {})", node.first, node.second, node.third);
      break;
    case Kind::kVerticalSlash:
      fmt::format_to(out, "vertical_slash([{}], [{}])", fmt::join(node.list, ", "),
                     fmt::join(node.slashes, ", "));
      break;
    case Kind::kHierarchical:
      *text += "hierarchical([";
      for (const auto& level : node.children) {
        fmt::format_to(out, "{}({}, {}, {})", level == node.children.front() ? "" : ", ",
                       level->first, level->second, level->third);
      }
      *text += "])";
      break;
    case Kind::kHeads:
    case Kind::kSum:
      *text += node.kind == Kind::kHeads ? "heads(" : "sum(";
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
