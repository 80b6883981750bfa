// Completion for bash: tables of verbs, options and values, and a function that looks into them.
#include <fmt/format.h>

#include <map>

#include "program/description.h"

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

// Words to offer for kinds of values that have others too.
struct KnownWords {
  std::string_view value;
  std::string_view words;
};
constexpr KnownWords kKnownWords[] = {{"DEVICE", "cuda sim:sm_80 sim:sm_90a"},
                                      {"ARCH", "sm_80 sm_90a sm_90"}};

struct Tables {
  std::vector<std::string> paths;                            // " run", "pattern draw"
  std::map<std::string, std::vector<std::string>> values;    // what is done: where
  std::vector<std::pair<std::string, std::string>> options;  // of a verb
  std::vector<std::pair<std::string, std::string>> below;    // likewise: its verbs
};

// What completes the value of an option, as an assignment of the script.
std::string action_of(const OptionDescription& option) {
  if (!option.words.empty()) return fmt::format("words='{}'", fmt::join(option.words, " "));
  for (const KnownWords& known : kKnownWords) {
    if (known.value == option.value) return fmt::format("words='{}'", known.words);
  }
  if (option.value == "FOLDER") return "kind=folders";
  if (option.value == "FILE" || option.value == "PATHS") return "kind=files";
  return "kind=none";
}

void fill(const VerbDescription& verb, Tables* tables) {
  std::string options;
  for (const OptionDescription& option : verb.options) {
    if (option.is_positional) continue;
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) options += (options.empty() ? "" : " ") + name;
      if (!option.value.empty())
        tables->values[action_of(option)].push_back(verb.name + " " + name);
    }
  }
  tables->options.emplace_back(verb.name, options);
  std::string names;
  for (const VerbDescription& below : verb.verbs) {
    const std::string name = below.name.substr(verb.name.empty() ? 0 : verb.name.size() + 1);
    names += (names.empty() ? "" : " ") + name;
    tables->paths.push_back(verb.name + " " + name);
    fill(below, tables);
  }
  if (!names.empty()) tables->below.emplace_back(verb.name, names);
}

std::string alternatives(const std::vector<std::string>& patterns) {
  return fmt::format("'{}'", fmt::join(patterns, "' | '"));
}

}  // namespace

std::string bash_completion(const VerbDescription& program) {
  Tables tables;
  fill(program, &tables);
  // Behind help the words are of the verb that is asked about, and the options are help's.
  std::string script = kBegin;
  script +=
      fmt::format("      {}) verb=\"${{verb:+$verb }}$each\" ;;\n", alternatives(tables.paths));
  script +=
      "    esac\n  done\n  local owner=$verb\n  [[ -n $helping ]] && owner=help\n"
      "  case \"$owner $before\" in\n";
  for (const auto& [action, where] : tables.values) {
    script += fmt::format("    {}) {} ;;\n", alternatives(where), action);
  }
  script += "    *)\n      if [[ $word == -* ]]; then\n        case $owner in\n";
  for (const auto& [verb, options] : tables.options) {
    script += fmt::format("          '{}') words='{}' ;;\n", verb, options);
  }
  script += "        esac\n      else\n        case $verb in\n";
  for (const auto& [verb, names] : tables.below) {
    script += fmt::format("          '{}') words='{}' ;;\n", verb, names);
  }
  script += "        esac\n      fi\n      ;;\n";
  return script + kEnd;
}

}  // namespace annulus::program
