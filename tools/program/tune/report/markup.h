#ifndef ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_

// Writes HTML that is well-formed XML as well. Texts and attribute values come from files of
// unknown origin, so all of them are escaped.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::program::report {

// The most characters of one text. A longer text is cut and ends in an ellipsis.
inline constexpr std::size_t kMaxCharacters = 400;

// The text as content of an element or as the value of an attribute. Characters that a parser would
// take for markup become references, and line breaks become blanks. U+FFFD replaces invalid UTF-8,
// characters that XML does not allow, and characters that change the direction of text.
std::string escaped(std::string_view text, std::size_t most = kMaxCharacters);

struct Attribute {
  const char* name;
  std::string value;
};
using Attributes = std::initializer_list<Attribute>;

// A part of a page. The names of elements and attributes are literals of the program.
class Markup {
 public:
  Markup& open(const char* name, Attributes attributes = {});
  Markup& close();  // closes the innermost open element
  // An element without content. Requires: an element of SVG, or an HTML element that never has
  // content.
  Markup& leaf(const char* name, Attributes attributes = {});
  Markup& text(std::string_view text);
  // Calls open(), text() and close().
  Markup& element(const char* name, std::string_view text, Attributes attributes = {});
  // A link to the element of this page with the given id.
  Markup& link(const std::string& id, std::string_view text);
  Markup& part(std::string_view markup);  // appends markup that another Markup wrote
  Markup& verbatim(const char* markup);   // appends a literal of the program

  std::size_t bytes() const { return written_.size(); }
  // Returns the written markup. Requires: all elements are closed.
  std::string take() { return std::move(written_); }

 private:
  void begin(const char* name, Attributes attributes);

  std::string written_;
  std::vector<const char*> open_;
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_MARKUP_H_
