// Measures the kernels on a GPU beside other programs' on the same one: every problem of
// gpu_problems.h, round after round, ours and the peers' in turn, with L2 as the last run left it
// and with L2 full of other data. Data are random, and clocks and power of every round are noted.
// Prints a table and writes one JSON file with every single value. On a simulated device the times
// are those of the simulation and are marked as such.
//
//   gpu_bench --output FILE [--device cuda:0] [--rounds 7] [--runs 3] [--seconds N]
//             [--peers COMMAND] [--commit TEXT] [--filter TEXT] [--tiny]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "api/impl.h"
#include "base/fail.h"
#include "device/buffer.h"
#include "gpu_operands.h"
#include "gpu_peers.h"
#include "gpu_problems.h"
#include "gpu_state.h"
#include "harness.h"

namespace {

using namespace annulus;
using bench::GpuProblem;
using Json = nlohmann::json;

struct Options {
  std::string device = "cuda:0", output, peers, commit, filter;
  int rounds = 7;
  int runs = 3;  // runs in one measurement, whose median counts
  double seconds = 1e9;
  bool tiny = false;
};

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> texts = {{"--device", &options.device},
                                                     {"--output", &options.output},
                                                     {"--peers", &options.peers},
                                                     {"--commit", &options.commit},
                                                     {"--filter", &options.filter}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--tiny") {
      options.tiny = true;
      continue;
    }
    const auto text = texts.find(name);
    if (value == nullptr) {
      base::fail(ErrorCode::kInvalidArgument, "'{}' is no option, or lacks its value", name);
    } else if (text != texts.end()) {
      *text->second = value;
    } else if (name == "--rounds") {
      options.rounds = std::max(1, std::atoi(value));
    } else if (name == "--runs") {
      options.runs = std::max(1, std::atoi(value));
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else {
      base::fail(ErrorCode::kInvalidArgument, "'{}' is no option of gpu_bench", name);
    }
    ++i;
  }
  return options;
}

// Our plan of a problem, with operands of its own.
class Ours {
 public:
  Ours(const Device& device, const GpuProblem& problem)
      : device_(device),
        plan_(device.plan(problem.problem)),
        operands_(device, problem.problem),
        workspace_(device.allocate(plan_.workspace_bytes())) {}

  const Plan& plan() const { return plan_; }
  double run() { return api::run_millis(device_, plan_, operands_.get(), workspace_.data()); }

 private:
  Device device_;
  Plan plan_;
  bench::GpuOperands operands_;
  DeviceMemory workspace_;
};

// Fills L2, and more than that, with other data.
class Flush {
 public:
  explicit Flush(const Device& device) : context_(api::inside(device).context) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(
        1 << 20, device.info().simulated ? 0 : 2 * context_->info().l2_bytes));
    buffer_ = device::Buffer(context_, bytes);
  }
  void operator()() {
    const device::ContextScope scope(*context_);
    abi::check(
        context_->table(),
        context_->table().memset_d8_async(buffer_.address(), ++value_, buffer_.bytes(), nullptr),
        "cuMemsetD8Async");
  }

 private:
  device::ContextPointer context_;
  device::Buffer buffer_;
  unsigned char value_ = 0;
};

// The measurements of one program for one problem.
struct Series {
  std::vector<double> warm_ms, cold_ms;  // one value for each round
  std::string error;
};

Json state_json(const std::optional<bench::GpuState>& state) {
  if (!state) return nullptr;
  return {{"sm_mhz", state->sm_megahertz},
          {"memory_mhz", state->memory_megahertz},
          {"watts", state->milliwatts / 1000.0},
          {"celsius", state->celsius}};
}

class Measurement {
 public:
  explicit Measurement(Options options)
      : options_(std::move(options)),
        device_(Device::open(options_.device)),
        monitor_(bench::pci_bus(device_)),
        flush_(device_),
        peers_(options_.peers),
        problems_(bench::gpu_problems(options_.tiny)) {
    std::erase_if(problems_, [&](const GpuProblem& problem) {
      return problem.name.find(options_.filter) == std::string::npos;
    });
  }

  int run() {
    const double start = bench::wall_seconds();
    for (const GpuProblem& problem : problems_)
      ours_.push_back(std::make_unique<Ours>(device_, problem));
    series_.resize(problems_.size());
    for (int round = -1; round < options_.rounds; ++round) {  // round -1 warms up
      if (round > 0 && bench::wall_seconds() - start > options_.seconds) break;
      for (std::size_t i = 0; i < problems_.size(); ++i) measure(i, round >= 0);
      if (round < 0) continue;
      ++rounds_;
      write();  // written after each measurement, so that nothing is lost if the program ends early
    }
    print();
    return 0;
  }

 private:
  void measure(std::size_t index, bool keep) {
    for (const bool cold : {false, true}) {
      std::vector<double> each;
      for (int run = 0; run < options_.runs; ++run) {
        if (cold) flush_();
        each.push_back(ours_[index]->run());
      }
      add(series_[index]["annulus"], cold, bench::median(each), keep);
      if (!cold && keep) states_.push_back(state_json(monitor_.read()));
      for (const std::string& backend : peers_.backends()) {
        Series& series = series_[index][backend];
        if (!series.error.empty()) continue;
        each = peers_.measure(backend, problems_[index], cold, options_.runs, &series.error);
        if (!each.empty()) add(series, cold, bench::median(each), keep);
      }
    }
  }

  static void add(Series& series, bool cold, double ms, bool keep) {
    if (keep) (cold ? series.cold_ms : series.warm_ms).push_back(ms);
  }

  double tflops(std::size_t index, const std::vector<double>& ms) const {
    return ms.empty() ? 0 : problems_[index].flop / (bench::median(ms) * 1e9);
  }
  // Dense time x density over the problem's own time, where both were measured.
  double share(std::size_t index) const {
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      if (problems_[i].name != problems_[index].dense) continue;
      const auto& own = series_[index].at("annulus").warm_ms;
      const auto& whole = series_[i].at("annulus").warm_ms;
      if (own.empty() || whole.empty()) return 0;
      return bench::median(whole) * problems_[index].density / bench::median(own);
    }
    return 0;
  }
  double best_peer(std::size_t index) const {
    double best = 0;
    for (const auto& [name, series] : series_[index]) {
      if (name != "annulus") best = std::max(best, tflops(index, series.warm_ms));
    }
    return best;
  }

  void print() const {
    const DeviceInfo& info = device_.info();
    std::printf("%s (%s), %d rounds of %d runs, medians; TFLOP/s of visible pairs\n",
                info.description.c_str(), info.architecture.c_str(), rounds_, options_.runs);
    if (info.simulated) {
      std::printf("simulated times: they say how long the simulation took, nothing of a GPU\n");
    }
    std::printf("%-50s %10s %10s %9s %9s %9s  %s\n", "problem", "ms", "cold ms", "TFLOP/s",
                "best peer", "share", "configuration");
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      const Series& own = series_[i].at("annulus");
      std::printf("%-50s %10.4f %10.4f %9.1f %9.1f %9.3f  %s\n", problems_[i].name.c_str(),
                  bench::median(own.warm_ms), bench::median(own.cold_ms), tflops(i, own.warm_ms),
                  best_peer(i), share(i), ours_[i]->plan().info().config.c_str());
    }
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      for (const auto& [name, series] : series_[i]) {
        if (!series.error.empty()) {
          std::printf("%s, %s: %s\n", problems_[i].name.c_str(), name.c_str(),
                      series.error.c_str());
        }
      }
    }
  }

  Json problem_json(std::size_t i) const {
    const GpuProblem& problem = problems_[i];
    const PlanInfo& info = ours_[i]->plan().info();
    Json json = {{"name", problem.name},
                 {"heads", problem.problem.heads},
                 {"kv_heads", problem.problem.kv_heads},
                 {"seq", problem.problem.seq_q},
                 {"dim", problem.problem.dim_qk},
                 {"block", problem.block},
                 {"layouts", problem.layouts},
                 {"kept_of_a_row", problem.kept},
                 {"density", problem.density},
                 {"useful_flop", problem.flop},
                 {"config", info.config},
                 {"decisions", info.decisions},
                 {"predicted_micros", ours_[i]->plan().predict().predicted_micros},
                 {"bar_tflops", problem.bar_tflops},
                 {"dense", problem.dense},
                 {"share_of_ideal", share(i)},
                 {"bar_share", problem.bar_share}};
    for (const auto& [name, series] : series_[i]) {
      json["programs"][name] = {{"warm_ms", series.warm_ms},
                                {"cold_ms", series.cold_ms},
                                {"warm_tflops", tflops(i, series.warm_ms)},
                                {"cold_tflops", tflops(i, series.cold_ms)},
                                {"error", series.error}};
    }
    return json;
  }

  void write() const {
    if (options_.output.empty()) return;
    const DeviceInfo& info = device_.info();
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    Json json = {{"kind", "measured on a GPU"},
                 {"version", 1},
                 {"simulated", info.simulated},
                 {"device", info.description},
                 {"architecture", info.architecture},
                 {"multiprocessors", info.multiprocessors},
                 {"driver", info.driver_version},
                 {"nvrtc", info.nvrtc_version},
                 {"peers", peers_.version()},
                 {"commit", options_.commit},
                 {"date", date},
                 {"rounds", rounds_},
                 {"runs", options_.runs},
                 {"states", states_}};
    if (info.simulated) json["kind"] = "simulated times, no GPU was measured";
    for (std::size_t i = 0; i < problems_.size(); ++i) json["problems"].push_back(problem_json(i));
    std::ofstream out(options_.output);
    out << json.dump(1) << '\n';
    if (!out) base::fail(ErrorCode::kFile, "{} cannot be written", options_.output);
  }

  Options options_;
  Device device_;
  bench::GpuMonitor monitor_;
  Flush flush_;
  bench::GpuPeers peers_;
  std::vector<GpuProblem> problems_;
  std::vector<std::unique_ptr<Ours>> ours_;
  std::vector<std::map<std::string, Series>> series_;
  std::vector<Json> states_;  // state of the device for each problem in each round
  int rounds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    return Measurement(parse(argc, argv)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
