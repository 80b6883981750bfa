// Prints and checks predictions of models of the hardware and properties of machine code, without a
// GPU:
//
//   model VERB [OPTION]...    VERB.cc describes the options of a verb
#include "model/model.h"

#include <cstdio>
#include <string>
#include <string_view>

namespace {

struct Verb {
  std::string_view name;
  int (*run)(int argc, char** argv);
};
constexpr Verb kVerbs[] = {
    {"batch_predictions", annulus::bench::batch_predictions},
    {"calibration", annulus::bench::calibration},
    {"choices", annulus::bench::choices},
    {"core_model", annulus::bench::core_model},
    {"predictions", annulus::bench::predictions},
    {"static_proof", annulus::bench::static_proof},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  for (const Verb& verb : kVerbs) {
    if (verb.name != wanted) continue;
    std::string name = "model " + std::string(verb.name);
    argv[1] = name.data();
    return verb.run(argc - 1, argv + 1);
  }
  std::fprintf(stderr, "usage: %s VERB [OPTION]..., VERB being one of:\n", argv[0]);
  for (const Verb& verb : kVerbs) std::fprintf(stderr, "  %s\n", verb.name.data());
  return 2;
}
