#ifndef ANNULUS_PROGRAM_PATTERN_PATTERN_H_
#define ANNULUS_PROGRAM_PATTERN_PATTERN_H_

// annulus pattern: what patterns are made of, and block layouts. Nothing here needs a
// device.

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "program/input/options.h"

namespace annulus::program {

// Where a layout comes from: a pattern and sizes, or a file.
struct PatternArguments {
  std::string pattern;
  std::string input;
  std::string from = "layout";        // the input's format
  std::optional<std::int64_t> seq;    // not given: what a file says, or 1024
  std::optional<std::int64_t> seq_k;  // not given: as seq
  std::optional<std::int64_t> heads;  // not given: what a file says, or as many as differ
  std::string block;                  // "128x128"

  std::int64_t head = 0;   // draw
  std::int64_t cells = 0;  // draw
  std::string svg;         // draw: to this file
  int layers = 0;          // stats
  std::string other;       // diff: the second file
  std::int64_t lines = 100;
  std::string output;  // export, import
  std::string to = "layout";
  std::int64_t max_work = kDefaultWorkSteps;  // of the whole verb, as WorkLimit::steps
  bool json = false;
};

struct PatternVerb {
  std::string name;  // "pattern draw"
  Exit (*run)(const PatternArguments& arguments) = nullptr;
  CLI::App* app = nullptr;
  PatternArguments arguments;
};
using PatternVerbs = std::list<PatternVerb>;

// Adds the verbs below `app`; their arguments go to `verbs`, which must stay.
void add_verbs(CLI::App& app, PatternVerbs* verbs);
// The one that the command line named; null: none.
const PatternVerb* chosen_verb(const PatternVerbs& verbs);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_PATTERN_PATTERN_H_
