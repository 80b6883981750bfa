#ifndef ANNULUS_PROGRAM_CLI_COMPLETION_H_
#define ANNULUS_PROGRAM_CLI_COMPLETION_H_

// What completions of all shells are made of.

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "program/cli/description.h"

namespace annulus::program {

// What a shell offers for the value of an option.
struct Offer {
  enum class Kind { kNothing, kFiles, kFolders, kWords } kind = Kind::kNothing;
  std::vector<std::string> words;  // of kWords

  friend auto operator<=>(const Offer&, const Offer&) = default;
};
Offer offer_for(const OptionDescription& option);

struct CompletionTables {
  std::vector<std::string> paths;  // " run", "pattern draw": a verb, and the next word of it
  std::map<Offer, std::vector<std::string>> values;  // what is offered: behind "run --mode"
  std::vector<const VerbDescription*> verbs;         // all; the program is the first
};
// `program` must outlive them.
CompletionTables completion_tables(const VerbDescription& program);

// "draw" of "pattern draw".
std::string last_word(const VerbDescription& verb);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_COMPLETION_H_
