// Masks as programs, and the list of general kernels.

#include "attention/kernels/mask_program.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "annulus/types.h"
#include "attention/plan/general.h"
#include "params/attention_params.h"
#include "params/mask_program_params.h"

namespace annulus::attention {
namespace {

std::optional<pattern::MaskCode> program_of(const std::string& text) {
  return emit_program(Pattern::parse(text), kernels::kMaskNumbers, {2, {0, 64}, {.seq_k = 64}});
}

TEST_CASE("a program is numbers alone: patterns of one form differ in nothing else") {
  const auto one = program_of("causal & (window(7, 0) | global(3))");
  const auto other = program_of("causal & (window(9, 0) | global(5))");
  REQUIRE(one);
  REQUIRE(other);
  CHECK(one->text == kProgramText);
  CHECK(one->lists.size() == other->lists.size());
  CHECK(one->lists != other->lists);
  CHECK(one->numbers == other->numbers);
  CHECK(one->lists.back() == static_cast<std::int32_t>(kernels::MaskOp::kEnd));
}

TEST_CASE("what decides nothing is left out of a program") {
  const auto size = [](const char* text) { return program_of(text)->lists.size(); };
  CHECK(size("causal & dense") == size("causal"));
  CHECK(size("causal | ~dense") == size("causal"));
  CHECK(size("dense | window(3, 3)") == size("dense"));
  CHECK(size("heads(dense, dense)") == size("dense"));
}

TEST_CASE(
    "the operand that needs most answers comes first, and more than the stack has is refused") {
  // Each level joins two unions of the level below. So it needs one more stack entry than the level
  // below.
  std::string text = "(window(1,1) & sink(1))";
  for (int level = 0; level < 6; ++level) {
    const char* join = level % 2 == 0 ? " | " : " & ";
    const auto program = program_of(text);
    CAPTURE(text.size());
    CHECK(program.has_value() == (level + 2 <= kernels::kMaskDepth));
    text = "(" + text + join + text + ")";
  }
  std::string chain = "window(1,1)";
  for (int i = 2; i < 200; ++i) chain += " | (window(" + std::to_string(i) + ",0) & causal)";
  CHECK(program_of(chain));
}

TEST_CASE("general kernels are those that the documents name, each once") {
  std::ostringstream text;
  text << std::ifstream(ANNULUS_DOCS "/embedding.md").rdbuf();
  for (const jit::Arch arch : {jit::Arch{80, '\0'}, jit::Arch{90, 'a'}}) {
    const std::vector<GeneralKernel> kernels = general_kernels(arch);
    CHECK(kernels.size() == 14);
    for (const GeneralKernel& kernel : kernels) {
      CHECK(text.str().find("| " + to_string(kernel.config) + " |") != std::string::npos);
      CHECK_FALSE(why_spills(kernel.config, kernel.dims, arch).has_value());
    }
    const std::vector<jit::KernelSpec> specs = general_specs(arch);
    std::set<std::string> sources;
    for (const jit::KernelSpec& spec : specs) sources.insert(jit::source_text(spec));
    CHECK(sources.size() == specs.size());
  }
}

}  // namespace
}  // namespace annulus::attention
