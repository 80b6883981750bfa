#include "program/cli/completion.h"

#include <string_view>

namespace annulus::program {
namespace {

// Completions for the types of values that the help of options names.
struct KnownValue {
  std::string_view value;
  Offer::Kind kind;
  std::vector<std::string> words;
};
const KnownValue kKnownValues[] = {
    {"DEVICE", Offer::Kind::kWords, {"cuda", "sim:sm_80", "sim:sm_90a"}},
    {"ARCH", Offer::Kind::kWords, {"sm_80", "sm_90a", "sm_90"}},
    {"FOLDER", Offer::Kind::kFolders, {}},
    {"FILE", Offer::Kind::kFiles, {}},
    {"PATHS", Offer::Kind::kFiles, {}}};

void fill(const VerbDescription& verb, CompletionTables* tables) {
  tables->verbs.push_back(&verb);
  for (const OptionDescription& option : verb.options) {
    if (option.is_positional || option.value.empty()) continue;
    for (const std::string& name : option.names) {
      tables->values[offer_for(option)].push_back(verb.name + " " + name);
    }
  }
  for (const VerbDescription& below : verb.verbs) {
    tables->paths.push_back(verb.name + " " + last_word(below));
    fill(below, tables);
  }
}

}  // namespace

Offer offer_for(const OptionDescription& option) {
  if (!option.words.empty()) return {Offer::Kind::kWords, option.words};
  for (const KnownValue& known : kKnownValues) {
    if (known.value == option.value) return {known.kind, known.words};
  }
  return {};
}

CompletionTables completion_tables(const VerbDescription& program) {
  CompletionTables tables;
  fill(program, &tables);
  return tables;
}

std::string last_word(const VerbDescription& verb) {
  return verb.name.substr(verb.name.rfind(' ') + 1);
}

}  // namespace annulus::program
