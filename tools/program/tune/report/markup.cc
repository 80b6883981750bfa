#include "program/tune/report/markup.h"

#include <cstdint>
#include <optional>

namespace annulus::program::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

// The first character of a text that is not empty. Nothing if its first bytes are not valid UTF-8.
std::optional<Character> first_of(std::string_view text) {
  struct Form {
    std::uint8_t mask, lead;
    std::uint32_t least;  // a smaller code must use a shorter form
  };
  static constexpr Form kForms[] = {
      {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
  const auto lead = static_cast<std::uint8_t>(text[0]);
  Character found;
  for (const Form& form : kForms) {
    if ((lead & form.mask) != form.lead) {
      ++found.bytes;
      continue;
    }
    if (text.size() < found.bytes) return std::nullopt;
    found.code = lead & static_cast<std::uint8_t>(~form.mask);
    for (std::size_t i = 1; i < found.bytes; ++i) {
      const auto byte = static_cast<std::uint8_t>(text[i]);
      if ((byte & 0xc0) != 0x80) return std::nullopt;
      found.code = found.code << 6 | (byte & 0x3f);
    }
    const bool surrogate = found.code >= 0xd800 && found.code < 0xe000;
    if (found.code < form.least || found.code > 0x10ffff || surrogate) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

// Control characters, characters that change the direction of text, and code points that are not
// characters.
bool is_refused(std::uint32_t code) {
  struct Range {
    std::uint32_t first, last;
  };
  static constexpr Range kRefused[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x061c, 0x061c},
                                       {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069},
                                       {0xfffe, 0xffff}};
  for (const Range& range : kRefused) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

struct Reference {
  char character;
  std::string_view text;
};
constexpr Reference kReferences[] = {{'&', "&amp;"},  {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"},
                                     {'\'', "&#39;"}, {'\n', " "},   {'\r', " "},   {'\t', " "}};

const Reference* reference_of(char character) {
  for (const Reference& each : kReferences) {
    if (each.character == character) return &each;
  }
  return nullptr;
}

}  // namespace

std::string escaped(std::string_view text, std::size_t most) {
  std::string safe;
  for (std::size_t written = 0; !text.empty(); ++written) {
    if (written == most) return safe.append(kEllipsis);
    const std::optional<Character> character = first_of(text);
    const Reference* reference = reference_of(text[0]);
    if (reference != nullptr) {
      safe += reference->text;
    } else if (!character || is_refused(character->code)) {
      safe += kReplacement;
    } else {
      safe += text.substr(0, character->bytes);
    }
    text.remove_prefix(character ? character->bytes : 1);
  }
  return safe;
}

void Markup::begin(const char* name, Attributes attributes) {
  written_ += '<';
  written_ += name;
  for (const Attribute& each : attributes) {
    written_ += ' ';
    written_ += each.name;
    // The path of a plot is long and has only numbers, so it is not cut.
    written_ += "=\"" + escaped(each.value, std::string::npos) + '"';
  }
}

Markup& Markup::open(const char* name, Attributes attributes) {
  begin(name, attributes);
  written_ += '>';
  open_.push_back(name);
  return *this;
}

Markup& Markup::close() {
  written_ += "</";
  written_ += open_.back();
  written_ += '>';
  open_.pop_back();
  return *this;
}

Markup& Markup::leaf(const char* name, Attributes attributes) {
  begin(name, attributes);
  written_ += " />";
  return *this;
}

Markup& Markup::text(std::string_view text) {
  written_ += escaped(text);
  return *this;
}

Markup& Markup::element(const char* name, std::string_view content, Attributes attributes) {
  return open(name, attributes).text(content).close();
}

Markup& Markup::link(const std::string& id, std::string_view content) {
  return element("a", content, {{"href", "#" + id}});
}

Markup& Markup::part(std::string_view markup) {
  written_ += markup;
  return *this;
}

Markup& Markup::verbatim(const char* markup) {
  written_ += markup;
  return *this;
}

}  // namespace annulus::program::report
