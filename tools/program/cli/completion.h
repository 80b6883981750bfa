#ifndef ANNULUS_PROGRAM_CLI_COMPLETION_H_
#define ANNULUS_PROGRAM_CLI_COMPLETION_H_

// The tables from which the completions for all shells are made.

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "program/cli/description.h"

namespace annulus::program {

// The values that a shell offers for an option.
struct Offer {
  enum class Kind { kNothing, kFiles, kFolders, kWords } kind = Kind::kNothing;
  std::vector<std::string> words;  // if kind is kWords

  friend auto operator<=>(const Offer&, const Offer&) = default;
};
Offer offer_for(const OptionDescription& option);

struct CompletionTables {
  // " run" or "pattern draw": a verb, and one of the words that may follow it
  std::vector<std::string> paths;
  // An offer, with the options that take it, such as "run --mode".
  std::map<Offer, std::vector<std::string>> values;
  std::vector<const VerbDescription*> verbs;  // all verbs, after the program itself
};
// `program` must outlive the tables.
CompletionTables completion_tables(const VerbDescription& program);

// "draw" for "pattern draw".
std::string last_word(const VerbDescription& verb);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_COMPLETION_H_
