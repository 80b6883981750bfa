// Completion for zsh. It is like the completion for bash, but also shows the help of verbs and
// options.
#include <fmt/format.h>

#include "program/cli/completion.h"

namespace annulus::program {
namespace {

constexpr const char* kZshBegin = R"(#compdef annulus
# Completion of the program annulus for zsh, as annulus help --as zsh writes it.
_annulus() {
  local each verb='' helping='' before=${words[CURRENT-1]}
  local -a found
  for each in "${(@)words[2,CURRENT-1]}"; do
    if [[ -z $verb && $each == help ]]; then helping=1; continue; fi
    case "$verb $each" in
)";

constexpr const char* kZshMiddle = R"(    esac
  done
  local owner=$verb
  [[ -n $helping ]] && owner=help
  if [[ $PREFIX == --*=* ]]; then
    before=${PREFIX%%=*}
    compset -P '*='
  fi
  case "$owner $before" in
)";

constexpr const char* kZshEnd = R"(    esac
    if (( $#found )); then _describe verb found; else _files; fi
  fi
}
if [[ ${funcstack[1]} == _annulus ]]; then _annulus "$@"; else compdef _annulus annulus; fi
)";

std::string zsh_action(const Offer& offer) {
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return "";
    case Offer::Kind::kFiles:
      return "_files; ";
    case Offer::Kind::kFolders:
      return "_files -/; ";
    case Offer::Kind::kWords:
      break;
  }
  return fmt::format("compadd -- {}; ", fmt::join(offer.words, " "));
}

// "name:help", quoted for the shell.
std::string described(const std::string& name, const std::string& help) {
  std::string quoted;
  for (const char c : help) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fmt::format("'{}:{}'", name, quoted);
}

std::string zsh_patterns(const std::vector<std::string>& texts) {
  return fmt::format("('{}')", fmt::join(texts, "'|'"));
}

std::string found_line(const std::string& verb, const std::vector<std::string>& found) {
  return fmt::format("      ('{}') found=({}) ;;\n", verb, fmt::join(found, " "));
}

}  // namespace

std::string zsh_completion(const VerbDescription& program) {
  const CompletionTables tables = completion_tables(program);
  std::string script = kZshBegin;
  script +=
      fmt::format("      {} verb=\"${{verb:+$verb }}$each\" ;;\n", zsh_patterns(tables.paths));
  script += kZshMiddle;
  for (const auto& [offer, where] : tables.values) {
    script += fmt::format("    {} {}return ;;\n", zsh_patterns(where), zsh_action(offer));
  }
  script += "  esac\n  if [[ $PREFIX == -* ]]; then\n    case $owner in\n";
  for (const VerbDescription* verb : tables.verbs) {
    std::vector<std::string> found;
    for (const OptionDescription& option : verb->options) {
      if (option.is_positional) continue;
      for (const std::string& name : option.names) found.push_back(described(name, option.help));
    }
    script += found_line(verb->name, found);
  }
  script += "    esac\n    _describe -o option found\n  else\n    case $verb in\n";
  for (const VerbDescription* verb : tables.verbs) {
    if (verb->verbs.empty()) continue;
    std::vector<std::string> found;
    for (const VerbDescription& below : verb->verbs) {
      found.push_back(described(last_word(below), below.help));
    }
    script += found_line(verb->name, found);
  }
  return script + kZshEnd;
}

}  // namespace annulus::program
