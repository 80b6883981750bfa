#include "simulator/driver/objects/start_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/env.h"
#include "simulator/driver/objects/console.h"
#include "simulator/fault/fault.h"

namespace annulus::simulator::driver {
namespace {

using abi::SimulatorOptions;

struct Option {
  const char* name;
  std::uint32_t SimulatorOptions::*member;  // null for `seed` and `ignored`, which have 64 bits
  std::uint32_t most;
};
constexpr std::uint32_t kAny = ~0u;
constexpr Option kOptions[] = {
    {"checked", &SimulatorOptions::checked, 1},
    {"threads", &SimulatorOptions::threads, 1024},
    {"quantum", &SimulatorOptions::quantum, kAny},
    {"landing", &SimulatorOptions::landing, 2},
    {"limit", &SimulatorOptions::limit, kAny},
    {"streams", &SimulatorOptions::streams, 1},
    {"products", &SimulatorOptions::products, 2},
    {"resident", &SimulatorOptions::resident, 2},
    {"reading", &SimulatorOptions::reading, 1},
    {"seed", nullptr, 0},
    {"ignored", nullptr, 0},
};

bool foreign = false;

// Removes and returns the text before the separator, or all of the text if there is no separator.
std::string_view take(std::string_view* text, char separator) {
  const std::size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return part;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads the kinds of faults from a text like "missing fence+early reuse".
std::string read_kinds(std::string_view text, std::uint64_t* kinds) {
  while (!text.empty()) {
    const std::string_view name = take(&text, '+');
    const std::optional<FaultKind> kind = fault_kind(name);
    if (!kind) return fmt::format("'{}' is not a kind of fault", name);
    if ((bit(*kind) & kCanBeIgnored) == 0) {
      return fmt::format("no kernel can continue after the fault '{}'", name);
    }
    *kinds |= bit(*kind);
  }
  return {};
}

std::vector<int> all_of(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string read_value(const Option& option, std::string_view value, SimulatorOptions* options) {
  const std::string_view name = option.name;
  if (name == "ignored") return read_kinds(value, &options->ignored);
  if (name == "reading" && (value == "strict" || value == "proven")) {
    options->reading = value == "proven";
    return {};
  }
  const std::optional<std::uint64_t> read = number(value);
  if (!read) return fmt::format("{} is '{}', which is not a number", name, value);
  if (name == "seed") {
    options->seed = *read;
    return {};
  }
  if (*read > option.most) {
    return fmt::format("{} is {}; it may be 0 to {}", name, *read, option.most);
  }
  options->*option.member = static_cast<std::uint32_t>(*read);
  return {};
}

}  // namespace

void serve_foreign_programs() { foreign = true; }

bool serves_foreign_programs() { return foreign; }

base::LogLevel foreign_log_level() {
  static const base::LogLevel level = [] {
    const std::string text = base::read_environment().log;
    for (const auto each :
         {base::LogLevel::kError, base::LogLevel::kInfo, base::LogLevel::kDebug}) {
      if (text == base::to_string(each)) return each;
    }
    return base::LogLevel::kWarning;
  }();
  return level;
}

bool valid(const SimulatorOptions& options) {
  for (const Option& option : kOptions) {
    if (option.member != nullptr && options.*option.member > option.most) return false;
  }
  return (options.ignored & ~kCanBeIgnored) == 0;
}

std::string read_options(std::string_view text, SimulatorOptions* options) {
  SimulatorOptions read = *options;
  while (!text.empty()) {
    std::string_view value = take(&text, ',');
    const std::string_view name = take(&value, '=');
    const Option* found = nullptr;
    std::string names;
    for (const Option& option : kOptions) {
      if (option.name == name) found = &option;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", option.name);
    }
    if (found == nullptr)
      return fmt::format("there is no option '{}'; the options are {}", name, names);
    const std::string wrong = read_value(*found, value, &read);
    if (!wrong.empty()) return wrong;
  }
  *options = read;
  return {};
}

std::vector<int> visible_devices(int count) {
  const std::string text = base::read_environment().visible_devices;
  std::vector<int> visible;
  std::string_view rest = text;
  while (foreign && !rest.empty()) {
    const std::optional<std::uint64_t> one = number(take(&rest, ','));
    if (!one || *one >= static_cast<std::uint64_t>(count)) return visible;
    if (std::ranges::find(visible, static_cast<int>(*one)) != visible.end()) return {};
    visible.push_back(static_cast<int>(*one));
  }
  return foreign && !text.empty() ? visible : all_of(count);
}

std::optional<SimulatorOptions> read_start_options() {
  SimulatorOptions options;
  options.reading = foreign ? 1 : 0;
  const std::string text = base::read_environment().simulator_options;
  const std::string wrong = read_options(text, &options);
  if (!wrong.empty()) {
    write_stderr(fmt::format("ANNULUS_SIMULATOR_OPTIONS is '{}': {}\n", text, wrong));
    return std::nullopt;
  }
  return options;
}

}  // namespace annulus::simulator::driver
