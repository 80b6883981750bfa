// Completion for fish: one line for each verb and each option, with the verbs that accept it.
#include <fmt/format.h>

#include <map>

#include "program/cli/completion.h"

namespace annulus::program {
namespace {

constexpr const char* kFishBegin =
    R"(# Completion of the program annulus for fish, as annulus help --as fish writes it.

# The verb that the command line has come to, as "pattern draw". Behind help it is the one that is
# asked about; whose options there are then is said by `owner`.
function __annulus_verb -a what
    set -l verb ''
    set -l helping ''
    for each in (commandline -opc)[2..]
        if test -z "$verb" -a "$each" = help
            set helping help
            continue
        end
        switch "$verb $each"
)";

constexpr const char* kFishEnd = R"(                set verb (string trim -- "$verb $each")
        end
    end
    if test "$what" = owner -a -n "$helping"
        echo help
    else
        echo $verb
    end
end

function __annulus_in
    contains -- (__annulus_verb owner) $argv
end

function __annulus_below
    test (__annulus_verb) = "$argv[1]"
end

)";

std::string fish_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return "'" + quoted + "'";
}

// The options of fish's `complete` that describe the value which an option takes.
std::string fish_value(const OptionDescription& option) {
  if (option.value.empty()) return "";
  const Offer offer = offer_for(option);
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return " -x";
    case Offer::Kind::kFiles:
      return " -r -F";
    case Offer::Kind::kFolders:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::Kind::kWords:
      break;
  }
  return fmt::format(" -x -a '{}'", fmt::join(offer.words, " "));
}

std::string fish_option(const OptionDescription& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    text += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
  }
  return fmt::format("{}{} -d {}", text, fish_value(option), fish_quoted(option.help));
}

}  // namespace

std::string fish_completion(const VerbDescription& program) {
  const CompletionTables tables = completion_tables(program);
  std::string script = kFishBegin;
  script += fmt::format("            case '{}'\n", fmt::join(tables.paths, "' '"));
  script += kFishEnd;
  // fish evaluates the condition of every line, so verbs that share an option share a line.
  std::map<std::string, std::string> options;
  for (const VerbDescription* verb : tables.verbs) {
    for (const VerbDescription& below : verb->verbs) {
      script += fmt::format("complete -c annulus -n '__annulus_below \"{}\"' -f -a {} -d {}\n",
                            verb->name, last_word(below), fish_quoted(below.help));
    }
    for (const OptionDescription& option : verb->options) {
      if (option.is_positional) continue;
      options[fish_option(option)] += fmt::format(" \"{}\"", verb->name);
    }
  }
  for (const auto& [option, verbs] : options) {
    script += fmt::format("complete -c annulus -n '__annulus_in{}'{}\n", verbs, option);
  }
  return script;
}

}  // namespace annulus::program
