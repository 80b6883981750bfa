#ifndef ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_

// Writes HTML that is well-formed XML as well. Text and values of attributes come from files that
// anybody may have written, so there is no way to write them but escaped.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::program::report {

// Characters of one text; a longer one is cut and ends in an ellipsis.
inline constexpr std::size_t kMostCharacters = 400;

// The text as content or as an attribute's value: what a parser takes for markup is written as a
// reference, breaks of lines become blanks, and bytes that are no UTF-8, characters that XML does
// not know and those that turn the direction of text become U+FFFD.
std::string escaped(std::string_view text, std::size_t most = kMostCharacters);

struct Attribute {
  const char* name;
  std::string value;
};
using Attributes = std::initializer_list<Attribute>;

// A part of a page. Names of elements and of attributes are the program's own.
class Markup {
 public:
  Markup& open(const char* name, Attributes attributes = {});
  Markup& close();  // the innermost element that is open
  // An element without content. Requires: one of SVG, or one that HTML knows to have none.
  Markup& leaf(const char* name, Attributes attributes = {});
  Markup& text(std::string_view text);
  // open(), text() and close().
  Markup& element(const char* name, std::string_view text, Attributes attributes = {});
  // A link to the element of this page with that id.
  Markup& link(const std::string& id, std::string_view text);
  Markup& part(std::string_view markup);  // that another Markup has written
  Markup& verbatim(const char* markup);   // of the program's own

  std::size_t bytes() const { return written_.size(); }
  // Requires: all elements are closed.
  std::string take() { return std::move(written_); }

 private:
  void begin(const char* name, Attributes attributes);

  std::string written_;
  std::vector<const char*> open_;
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_
