// Every golden program on the device under test: with checks and without, when it is simulated.

#include <doctest/doctest.h>

#include <cctype>
#include <set>

#include "base/random.h"
#include "device/simulator.h"
#include "sim/golden/runner.h"
#include "support/device.h"
#include "support/options.h"

namespace annulus::golden {
namespace {

void run_all(const device::ContextPointer& context) {
  for (const Golden& golden : all_programs()) {
    const Outcome outcome = run(context, golden, ANNULUS_GOLDEN_PTX);
    INFO(golden.name);
    if (!golden.modelled && test::on_simulator()) {
      // A refusal names the line; silence would mean that the program is modelled now.
      CHECK_MESSAGE(outcome.error.find("PTX line") != std::string::npos, outcome.error);
      continue;
    }
    CHECK_MESSAGE(outcome.error.empty(), outcome.error);
    const std::string first = outcome.first.empty() ? std::string() : outcome.first.front().text;
    CHECK_MESSAGE(outcome.mismatches == 0, outcome.mismatches, " words differ; ", first);
  }
}

TEST_CASE("every golden program gives what its definition says") {
  const device::ContextPointer context = open_device(test::device_name());
  run_all(context);
}

TEST_CASE("the fast twin gives the same") {
  if (!test::on_simulator()) return;
  const device::ContextPointer context = open_device(test::device_name());
  const auto options = device::simulator_options(*context);
  REQUIRE(options.has_value());
  abi::SimulatorOptions fast = *options;
  fast.checked = 0;
  fast.seed = 7;
  REQUIRE(device::set_simulator_options(*context, fast));
  run_all(context);
  device::set_simulator_options(*context, *options);
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%'; }
bool is_word(const std::string& token) { return !token.empty() && in_word(token.back()); }

// Words and single marks of a program, with the blanks in front of them.
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

// Programs with a few tokens of other programs in the place of their own: most are refused, some
// fault, some run; nothing may happen to the process.
TEST_CASE("damaged programs are refused, or fault, or run") {
  if (!test::on_simulator()) return;
  const device::ContextPointer context = open_device(test::device_name());
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
      // The first tokens are the header, which damages everything.
      std::size_t at = 20 + below(tokens.size() - 20);
      const std::vector<std::string>& other = texts[random.below(2) ? which : below(texts.size())];
      std::string token = random.below(16) == 0 ? "" : other[20 + below(other.size() - 20)];
      // Mostly a word for a word: marks in the wrong place do not get past the parser.
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
