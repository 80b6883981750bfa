#include "support/mutant.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "annulus/types.h"
#include "api/impl.h"
#include "attention/oracle/reference.h"
#include "base/json.h"
#include "base/random.h"
#include "device/simulator.h"
#include "jit/templates.h"
#include "support/dealt_case.h"
#include "support/device_case.h"
#include "support/faulty_files.h"
#include "support/options.h"

namespace annulus::test {
namespace {

using Files = std::map<std::string, std::string>;

bool is_space(char c) { return c == ' ' || c == '\n'; }

// The place {begin, end} of `what` in `text` at or after `from`, or {npos, npos}. White space is
// ignored, so a mutant still finds its place after the templates are formatted again.
std::pair<std::size_t, std::size_t> find_loosely(const std::string& text, const std::string& what,
                                                 std::size_t from) {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (is_space(text[begin])) continue;
    std::size_t at = begin;
    std::size_t i = 0;
    while (true) {
      while (i < what.size() && is_space(what[i])) ++i;
      if (i == what.size()) return {begin, at};
      while (at < text.size() && is_space(text[at])) ++at;
      if (at == text.size() || text[at] != what[i]) break;
      ++at;
      ++i;
    }
  }
  return {std::string::npos, std::string::npos};
}

Files mutated(const Mutant& mutant) {
  Files files = jit::TemplateSet::embedded()->files();
  for (const Edit& edit : mutant.edits) {
    std::string& text = files.at(edit.file);
    const auto [begin, end] = find_loosely(text, edit.from, 0);
    REQUIRE_MESSAGE(begin != std::string::npos, mutant.name, ": '", edit.from, "' is not in ",
                    edit.file, ": the template has changed, so change the mutant");
    REQUIRE_MESSAGE(find_loosely(text, edit.from, end).first == std::string::npos, mutant.name,
                    ": '", edit.from, "' is there twice");
    text.replace(begin, end - begin, edit.to);
  }
  return files;
}

std::string line_of(const Files& files, const base::Json& fault) {
  std::string name = fault.at("file").get<std::string>();
  if (name.starts_with(jit::kVirtualRoot))
    name.erase(0, std::string_view(jit::kVirtualRoot).size());
  const auto found = files.find(name);
  if (found == files.end()) return {};
  std::istringstream text(found->second);
  std::string line;
  for (int i = fault.at("line").get<int>(); i > 0 && std::getline(text, line); --i) {
  }
  return line;
}

DeviceAnswer answer_of(const Device& device, const Case& c, const MutantRun& run) {
  if (!run.drawn) return run_case(device, c, run.options);
  return DealtCase(device, c, run.options.config, run.options.max_multiprocessors,
                   attention::Dealt::kDrawn)
      .run();
}

}  // namespace

std::vector<Mutant> to_try(std::vector<Mutant> all) {
  if (options().problems <= 0) return all;
  base::Random random(options().seed);
  while (all.size() > static_cast<std::size_t>(options().problems)) {
    all.erase(all.begin() + random.below(static_cast<std::uint32_t>(all.size())));
  }
  return all;
}

bool try_mutant(const Mutant& mutant, const MutantRun& run, base::ThreadPool& pool) {
  const Case c = make_case(run.problem, 99);
  return try_mutant(mutant, run, [&](const Device& device) {
    const DeviceAnswer answer = answer_of(device, c, run);
    const auto oracle = attention::reference(c.problem, c.inputs(), pool);
    return annulus::compare(c.problem, oracle, answer.result()).within_tolerance;
  });
}

bool try_mutant(const Mutant& mutant, const MutantRun& run,
                const std::function<bool(const Device&)>& is_right) {
  const Files files = mutated(mutant);
  const ScratchFolder folder;
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  DeviceOptions device_options;
  device_options.name = run.device;
  device_options.template_dir = folder.path();
  const Device device = Device::open(device_options);

  device.counters(true);
  const device::Context& context = *api::inside(device).context;
  std::uint64_t faults = 0;
  for (std::uint64_t seed = 0; seed < run.seeds; ++seed) {
    SimulationOptions simulation = run.simulation;
    simulation.seed = seed_of(seed);
    device.set_simulation(simulation);
    abi::SimulatorOptions options = *device::simulator_options(context);
    options.landing = static_cast<std::uint32_t>(seed % 3);
    options.products = run.products;
    device::set_simulator_options(context, options);
    std::string outcome = "nothing";
    base::Json fault;
    try {
      if (!is_right(device)) outcome = "wrong answer";
    } catch (const Error& error) {
      const std::string json = device::simulator_fault(context);
      REQUIRE_MESSAGE(!json.empty(), std::string(error.what()));
      fault = base::parse_json(json, "the fault");
      outcome = fault.at("kind").get<std::string>();
      device::clear_simulator_fault(context);
    }
    if (outcome == "nothing") {
      std::uint64_t needed = 0;
      std::uint64_t ideal = 0;
      for (const auto& [name, value] : device.counters()) {
        if (name == "shared_wavefronts") needed = value;
        if (name == "shared_wavefronts_ideal") ideal = value;
      }
      if (needed > ideal) outcome = "bank conflicts";  // no kernel should have bank conflicts
    }
    faults += fault.is_null() ? 0 : 1;
    INFO(mutant.name, ", seed ", seed, ": ", fault.dump());
    CHECK_MESSAGE(mutant.expected.contains(outcome), mutant.name, " came out as: ", outcome);
    if (fault.is_null() || mutant.blamed.empty()) continue;
    const std::string line = line_of(files, fault);
    bool named = false;
    for (const std::string& piece : mutant.blamed) named |= line.find(piece) != std::string::npos;
    CHECK_MESSAGE(named, mutant.name, " blames the line: ", line);
  }
  return faults == run.seeds;
}

}  // namespace annulus::test
