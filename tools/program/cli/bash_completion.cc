// Completion for bash: tables of verbs, options and values, and a function that searches the
// tables.
#include <fmt/format.h>

#include "program/cli/completion.h"

namespace annulus::program {
namespace {

constexpr const char* kBegin =
    R"(# Completion of the program annulus for bash, as annulus help --as bash writes it.
_annulus() {
  # The shell parts words at ':' and '='.
  local each glued=0 verb='' helping='' words='' kind=''
  local -a all=()
  for each in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $each == = ]]; then
      continue
    elif [[ ($each == : || $glued == 1) && ${#all[@]} -gt 0 ]]; then
      all[${#all[@]}-1]+=$each
      [[ $each == : ]] && glued=1 || glued=0
    else
      all+=("$each")
    fi
  done
  [[ ${COMP_WORDS[COMP_CWORD]} == = ]] && all+=('')
  local last=$((${#all[@]} - 1))
  local word=${all[last]} before=''
  ((last > 0)) && before=${all[last-1]}
  for each in "${all[@]:0:last}"; do
    if [[ -z $verb && $each == help ]]; then helping=1; continue; fi
    case "$verb $each" in
)";

constexpr const char* kEnd = R"(  esac
  case $kind in
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    files) COMPREPLY=(); return ;;  # the shell's own
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  [[ $kind == none ]] && compopt +o default 2>/dev/null
  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
  fi
}
complete -o default -F _annulus annulus
)";

// An assignment of the script that completes a value of this kind.
std::string bash_action(const Offer& offer) {
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return "kind=none";
    case Offer::Kind::kFiles:
      return "kind=files";
    case Offer::Kind::kFolders:
      return "kind=folders";
    case Offer::Kind::kWords:
      break;
  }
  return fmt::format("words='{}'", fmt::join(offer.words, " "));
}

std::string long_options(const VerbDescription& verb) {
  std::vector<std::string> names;
  for (const OptionDescription& option : verb.options) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string names_directly_below(const VerbDescription& verb) {
  std::vector<std::string> names;
  for (const VerbDescription& below : verb.verbs) names.push_back(last_word(below));
  return fmt::format("{}", fmt::join(names, " "));
}

std::string alternatives(const std::vector<std::string>& patterns) {
  return fmt::format("'{}'", fmt::join(patterns, "' | '"));
}

}  // namespace

std::string bash_completion(const VerbDescription& program) {
  const CompletionTables tables = completion_tables(program);
  // After `help` the words name the verb whose help is wanted, and the options are the options of
  // `help`.
  std::string script = kBegin;
  script +=
      fmt::format("      {}) verb=\"${{verb:+$verb }}$each\" ;;\n", alternatives(tables.paths));
  script +=
      "    esac\n  done\n  local owner=$verb\n  [[ -n $helping ]] && owner=help\n"
      "  case \"$owner $before\" in\n";
  for (const auto& [offer, where] : tables.values) {
    script += fmt::format("    {}) {} ;;\n", alternatives(where), bash_action(offer));
  }
  script += "    *)\n      if [[ $word == -* ]]; then\n        case $owner in\n";
  for (const VerbDescription* verb : tables.verbs) {
    script += fmt::format("          '{}') words='{}' ;;\n", verb->name, long_options(*verb));
  }
  script += "        esac\n      else\n        case $verb in\n";
  for (const VerbDescription* verb : tables.verbs) {
    if (verb->verbs.empty()) continue;
    script +=
        fmt::format("          '{}') words='{}' ;;\n", verb->name, names_directly_below(*verb));
  }
  script += "        esac\n      fi\n      ;;\n";
  return script + kEnd;
}

}  // namespace annulus::program
