// Runs every golden program on the device under test. If the device is simulated, they run with and
// without checks.

#include <doctest/doctest.h>

#include <cctype>
#include <set>

#include "base/random.h"
#include "device/simulator.h"
#include "golden/runner.h"
#include "support/device.h"
#include "support/options.h"

namespace annulus::golden {
namespace {

// Runs the programs that exist for the device. If the device is simulated and of another
// architecture, the programs for Hopper run on a simulated Hopper device.
void run_all(const device::ContextPointer& context, const device::ContextPointer& hopper) {
  for (const Golden& golden : all_programs()) {
    const bool elsewhere = !runs_on(golden, *context);
    if (elsewhere && hopper == nullptr) continue;
    const Outcome outcome = run(elsewhere ? hopper : context, golden, ANNULUS_GOLDEN_PTX);
    INFO(golden.name);
    if (!golden.modelled && test::on_simulator()) {
      // A refusal names the line. If there is no refusal, the simulator supports the program now.
      CHECK_MESSAGE(outcome.error.find("PTX line") != std::string::npos, outcome.error);
      continue;
    }
    CHECK_MESSAGE(outcome.error.empty(), outcome.error);
    const std::string first = outcome.first.empty() ? std::string() : outcome.first.front().text;
    CHECK_MESSAGE(outcome.mismatches == 0, outcome.mismatches, " words differ; ", first);
  }
}

device::ContextPointer open_hopper() {
  return test::on_simulator() ? open_device("sim:sm_90a") : nullptr;
}

// Runs all programs with changed options.
void run_all_with(void (*change)(abi::SimulatorOptions& options)) {
  const device::ContextPointer context = open_device(test::device_name());
  const device::ContextPointer hopper = open_hopper();
  std::vector<abi::SimulatorOptions> before;
  for (const auto& one : {context, hopper}) {
    const auto options = device::simulator_options(*one);
    REQUIRE(options.has_value());
    before.push_back(*options);
    abi::SimulatorOptions changed = *options;
    change(changed);
    REQUIRE(device::set_simulator_options(*one, changed));
  }
  run_all(context, hopper);
  device::set_simulator_options(*hopper, before[1]);
  device::set_simulator_options(*context, before[0]);
}

TEST_CASE("every golden program gives what its definition says") {
  run_all(open_device(test::device_name()), open_hopper());
}

TEST_CASE("the fast mode gives the same") {
  if (!test::on_simulator()) return;
  run_all_with([](abi::SimulatorOptions& options) {
    options.checked = 0;
    options.seed = 7;
  });
}

TEST_CASE("asynchronous effects may land early or late, and products end by warp or warpgroup") {
  if (!test::on_simulator()) return;
  run_all_with([](abi::SimulatorOptions& options) {
    options.landing = 1;
    options.products = 2;
    options.seed = 3;
  });
  run_all_with([](abi::SimulatorOptions& options) {
    options.landing = 2;
    options.products = 1;
    options.quantum = 3;
  });
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%'; }
bool is_word(const std::string& token) { return !token.empty() && in_word(token.back()); }

// Splits a program into words and single punctuation marks, with the blanks before them.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at < text.size() && in_word(text[at])) {
      while (at < text.size() && in_word(text[at])) ++at;
    } else if (at < text.size()) {
      ++at;
    }
    tokens.push_back(text.substr(start, at - start));
  }
  return tokens;
}

// Replaces a few tokens of each program by tokens of other programs. Most of the programs are
// refused, some fault and some run, but the process must not be harmed.
TEST_CASE("damaged programs are refused, or fault, or run") {
  if (!test::on_simulator()) return;
  // This device accepts all of the programs.
  const device::ContextPointer context = open_hopper();
  const abi::SimulatorOptions before = *device::simulator_options(*context);
  abi::SimulatorOptions bounded = before;
  bounded.limit = 1;
  REQUIRE(device::set_simulator_options(*context, bounded));
  std::vector<Golden> programs = all_programs();
  std::vector<std::vector<std::string>> texts;
  for (const Golden& golden : programs)
    texts.push_back(tokens_of(program_text(golden, ANNULUS_GOLDEN_PTX)));
  base::Random random(test::options().seed);
  const auto below = [&](std::size_t bound) {
    return random.below(static_cast<std::uint32_t>(bound));
  };
  int loaded = 0;
  const int rounds = test::options().problems > 0 ? test::options().problems : 4000;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t which = below(texts.size());
    std::vector<std::string> tokens = texts[which];
    for (std::uint32_t edit = 0; edit <= random.below(2); ++edit) {
      // The first tokens are the header. A change there would damage the whole program.
      std::size_t at = 20 + below(tokens.size() - 20);
      const std::vector<std::string>& other = texts[random.below(2) ? which : below(texts.size())];
      std::string token = random.below(16) == 0 ? "" : other[20 + below(other.size() - 20)];
      // Usually a word replaces a word, because the parser refuses punctuation marks in the wrong
      // place.
      if (random.below(8) != 0) {
        while (!is_word(token)) token = other[20 + below(other.size() - 20)];
        while (!is_word(tokens[at])) at = 20 + below(tokens.size() - 20);
      }
      tokens[at] = token;
    }
    Golden damaged = programs[which];
    damaged.text.clear();
    for (const std::string& token : tokens) damaged.text += token;
    loaded += run(context, damaged, ANNULUS_GOLDEN_PTX).error.empty() ? 1 : 0;
  }
  MESSAGE(loaded, " of ", rounds, " damaged programs ran to their end");
  CHECK(loaded > rounds / 100);
  device::set_simulator_options(*context, before);
}

TEST_CASE("golden programs have names of their own") {
  std::set<std::string> names;
  for (const Golden& golden : all_programs()) {
    INFO(golden.name);
    CHECK(names.insert(golden.name).second);
  }
  CHECK(names.size() > 700);
}

}  // namespace
}  // namespace annulus::golden
