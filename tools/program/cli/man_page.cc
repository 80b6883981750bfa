// The man page, written in the macros of man(7).
#include <fmt/format.h>

#include "annulus/version.h"
#include "program/cli/command_line.h"
#include "program/cli/description.h"
#include "program/cli/environment.h"

namespace annulus::program {
namespace {

// Escapes the characters that roff interprets. Hyphens become minus signs, as the names of options
// need.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  // At the beginning of a line, roff would take these two characters for a request.
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

// The text as an argument of a macro, in quotes.
std::string macro_argument(std::string_view text) {
  std::string safe;
  for (const char c : roff(text)) safe += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return "\"" + safe + "\"";
}

std::string value_text(const OptionDescription& option) {
  if (option.words.empty()) return option.value;
  return fmt::format("{}", fmt::join(option.words, "|"));
}

std::string usage(const VerbDescription& verb) {
  std::string text = "annulus " + verb.name + " [OPTIONS]";
  for (const OptionDescription& option : verb.options) {
    if (!option.is_positional) continue;
    const std::string name = option.names.front() + (option.is_list ? "..." : "");
    text += option.is_required ? " " + name : " [" + name + "]";
  }
  return text;
}

void add_option(const OptionDescription& option, std::string* page) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + name;
  *page += fmt::format(".TP\n\\fB{}\\fR", roff(names));
  if (!option.value.empty() && !option.is_positional) {
    *page += fmt::format(" \\fI{}\\fR", roff(value_text(option)));
  }
  *page += fmt::format("\n{}\n", roff(option.help));
}

void add_section_of(const VerbDescription& verb, std::string* page) {
  *page += fmt::format(".SS {}\n{}.\n", macro_argument(usage(verb)), roff(verb.help));
  for (const OptionDescription& option : verb.options) add_option(option, page);
  for (const std::string_view line : examples_of(verb.name)) {
    *page += fmt::format(".PP\n.nf\n    {}\n.fi\n", roff(line));
  }
}

void add_verb(const VerbDescription& verb, std::string* page) {
  if (!verb.is_group) add_section_of(verb, page);
  for (const VerbDescription& below : verb.verbs) add_verb(below, page);
}

struct Entry {
  std::string name;
  std::string_view meaning;
};

void add_section(const char* title, const std::vector<Entry>& entries, std::string* page) {
  *page += fmt::format(".SH {}\n", title);
  for (const Entry& entry : entries) {
    *page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(entry.name), roff(entry.meaning));
  }
}

}  // namespace

std::string man_page(const VerbDescription& program) {
  std::string page = fmt::format(
      ".TH ANNULUS 1 \"\" \"Annulus {}.{}.{}\" \"User Commands\"\n"
      ".SH NAME\nannulus \\- {}\n"
      ".SH SYNOPSIS\n.B annulus\n\\fIVERB\\fR [\\fIOPTIONS\\fR]\n",
      ANNULUS_VERSION_MAJOR, ANNULUS_VERSION_MINOR, ANNULUS_VERSION_PATCH, roff(program.help));
  page +=
      ".SH DESCRIPTION\n"
      "Results are printed to standard output, with \\fB\\-\\-json\\fR as one object; an error is "
      "one line on standard error, and with \\fB\\-\\-json\\fR an object as well. A GPU is not "
      "needed: devices whose names begin with sim: are simulated.\n";
  page += ".SH OPTIONS\n";
  for (const OptionDescription& option : program.options) add_option(option, &page);
  page += ".SH VERBS\n";
  for (const VerbDescription& verb : program.verbs) add_verb(verb, &page);
  std::vector<Entry> codes;
  for (const ExitMeaning& each : exit_meanings()) {
    codes.push_back({std::to_string(static_cast<int>(each.exit)), each.meaning});
  }
  add_section("\"EXIT STATUS\"", codes, &page);
  std::vector<Entry> variables;
  for (const Variable& each : environment_variables()) {
    variables.push_back({std::string(each.name), each.meaning});
  }
  add_section("ENVIRONMENT", variables, &page);
  add_section("FILES",
              {{"~/.cache/annulus", "compiled kernels, below XDG_CACHE_HOME if that is set"},
               {"~/.cache/annulus/tuned", "tuned results, below XDG_CACHE_HOME if that is set"},
               {"PREFIX/lib/annulus/kernels", "kernels compiled ahead, for the installed library"},
               {"PREFIX/share/annulus/tuned", "packs of tuned results, for the installed library"},
               {"PREFIX/share/doc/annulus",
                "the documents; docs/patterns.md describes the language of patterns"}},
              &page);
  return page;
}

}  // namespace annulus::program
