// Measures the kernels on a GPU together with kernels of other programs. It measures the cases of
// gpu_cases.h, the most wanted first, in rounds in which all programs take turns. Each case is
// measured with L2 as the last run left it, and with L2 full of other data. Operands are random. On
// a simulated device the times are those of the simulation, and are marked as such.
//
//   gpu_bench [--device cuda:0] [--seconds N] [--rounds 3] [--runs 3] [--peer NAME=COMMAND]...
//             [--only TEXT]... [--patience 20] [--tiny]
//   gpu_bench --list                             names the cases
//   gpu_bench --plan-only --device sim:sm_90a    plans all cases to compile their kernels;
//                                                prints {"name", "config", "compile_ms"} or
//                                                {"name", "error"} for each, and exits 1 if one has
//                                                an error
//   gpu_bench --compile-into DIR                 compiles the kernels for H100 and H200 as annulus
//                                                warm does; neither GPU need be in this machine
//
// This process never uses the device. For the library it starts itself with --serve, and it starts
// one process for each peer. It sends them questions (gpu_process.h), and every question has a
// deadline. A process that misses a deadline is killed and started again for the next case, but a
// peer at most twice. --patience is the number of seconds that all peers together may take to
// start, and that a first run may take. The first run of a "late" peer may take six times as long,
// and a round may take a quarter. On a simulated device the library has ten times as long.
//
// Each result is one JSON line on standard output. It is written as soon as it is known, so that a
// run that is cut short keeps everything that was measured. Texts for people go to stderr. The
// first lines are two ceilings, whose "before" and "during" are states of the device:
//
//   {"ceiling": "copy", "terabytes_a_second": 3.0, "bytes": 4294967296, "by": ..., "device": ...}
//       the bytes read plus the bytes written by copies from device memory to device memory
//   {"ceiling": "gemm", "tflops": 780.1, "by": "torch 2.11 8192^3 bf16, random data"}
//
// Then there is a line for each case. It has the fields of describe() of gpu_cases.h, and "config",
// "decisions", "predicted_micros" and "predicted_range" of the library's plan, "bars", "device",
// "simulated", "rounds", "runs", "state" (one for each round of the library with a warm L2), and
//
//   "programs": {"annulus": {"first_ms": 812.5, "warm_ms": [...], "cold_ms": [...], "error": ""}}
//
// with the median of the runs of each round. "again": true marks a case that was measured before,
// but without a peer that had not started yet or that is measured last. A ceiling that no peer can
// measure has an "error". Exits 0 when it ends by itself, even if the time ran out, and 1 if it
// cannot start.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/fail.h"
#include "gpu_cases.h"
#include "gpu_process.h"
#include "gpu_worker.h"
#include "harness.h"

namespace {

using namespace annulus;
using bench::GpuCase;
using bench::GpuProcess;
using Json = nlohmann::json;

// The longest time of a case in its rounds. If it would take longer, fewer runs are made.
constexpr double kCaseMillis = 2000;
constexpr int kPeerStartsAgain = 2;

struct Peer {
  std::string name, command;
};

struct Options {
  std::string device = "cuda:0";
  double seconds = 1e9;
  double patience = 20;
  int rounds = 3;
  int runs = 3;  // runs in a round, of which the median counts
  std::vector<Peer> peers;
  std::vector<std::string> only;
  std::string compile_into;
  bool tiny = false, list = false, serve = false, plan_only = false;
};

double positive(const std::string& name, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || value > 1e9) {
    base::fail(ErrorCode::kInvalidArgument, "{} is '{}'; give a number above 0, up to 1e9", name,
               text);
  }
  return value;
}

int count(const std::string& name, const std::string& text) {
  const double value = positive(name, text);
  if (value != static_cast<int>(value) || value > 1000) {
    base::fail(ErrorCode::kInvalidArgument, "{} is '{}'; give a whole number from 1 to 1000", name,
               text);
  }
  return static_cast<int>(value);
}

Peer peer_of(const std::string& text, const std::vector<Peer>& others) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    base::fail(ErrorCode::kInvalidArgument,
               "--peer is '{}'; give NAME=COMMAND, as flash=\"python3 tools/gpu_peers.py\"", text);
  }
  Peer peer = {text.substr(0, at), text.substr(at + 1)};
  const bool taken = std::ranges::count(others, peer.name, &Peer::name) > 0;
  if (taken || peer.name == "annulus") {
    base::fail(ErrorCode::kInvalidArgument, "two programs are called '{}'; name the peer otherwise",
               peer.name);
  }
  return peer;
}

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, bool*> flags = {{"--tiny", &options.tiny},
                                              {"--list", &options.list},
                                              {"--serve", &options.serve},
                                              {"--plan-only", &options.plan_only}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    const std::set<std::string> known = {"--device", "--seconds", "--patience", "--rounds",
                                         "--runs",   "--peer",    "--only",     "--compile-into"};
    if (!known.contains(name)) {
      base::fail(ErrorCode::kInvalidArgument,
                 "'{}' is not an option; gpu_bench has --device, --seconds, --patience, --rounds, "
                 "--runs, --peer, --only, --tiny, --list, --plan-only and --compile-into",
                 name);
    }
    if (++i == argc) base::fail(ErrorCode::kInvalidArgument, "{} lacks its value", name);
    const std::string value = argv[i];
    if (name == "--device") options.device = value;
    if (name == "--seconds") options.seconds = positive(name, value);
    if (name == "--patience") options.patience = positive(name, value);
    if (name == "--rounds") options.rounds = count(name, value);
    if (name == "--runs") options.runs = count(name, value);
    if (name == "--peer") options.peers.push_back(peer_of(value, options.peers));
    if (name == "--only") options.only.push_back(value);
    if (name == "--compile-into") options.compile_into = value;
  }
  return options;
}

std::vector<GpuCase> wanted_cases(const Options& options) {
  std::vector<GpuCase> cases = bench::gpu_cases(options.tiny);
  std::erase_if(cases, [&](const GpuCase& one) {
    return !options.only.empty() && std::ranges::none_of(options.only, [&](const auto& text) {
      return one.name().find(text) != std::string::npos;
    });
  });
  if (cases.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "no case has '{}' in its name; --list names all",
               fmt::join(options.only, "' or '"));
  }
  return cases;
}

// A file with the blocks of a case as int32. The destructor removes the file.
class IndexFile {
 public:
  explicit IndexFile(const GpuCase& one) {
    const std::vector<std::int32_t>& indices = one.attention.indices;
    if (indices.empty()) return;
    name_ = (std::filesystem::temp_directory_path() / "annulus-blocks-XXXXXX").string();
    const int file = mkstemp(name_.data());
    std::FILE* out = file < 0 ? nullptr : fdopen(file, "wb");
    if (out == nullptr) return;  // the program that reads the file finds it empty and reports that
    std::fwrite(indices.data(), sizeof(std::int32_t), indices.size(), out);
    std::fclose(out);
  }
  ~IndexFile() {
    std::error_code ignored;
    if (!name_.empty()) std::filesystem::remove(name_, ignored);
  }
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// A measured program, with its current process.
struct Contestant {
  std::string name;
  std::vector<std::string> command;
  int starts_left = 0;  // how many more times it may be started
  std::unique_ptr<GpuProcess> process;
  bool ready = false;  // it has sent its greeting
  Json greeting = Json::object();
  std::string why = "is not started";  // why it is not ready

  bool starting() const { return process && !ready; }
  bool says(const char* what) const { return greeting.value(what, Json()) == true; }
  bool late() const { return says("late"); }
};

// The results of one contestant for one case.
struct Series {
  Contestant* of = nullptr;
  bool loaded = false;
  double first_ms = 0, ms = 0;
  std::vector<double> warm_ms, cold_ms;  // one value for each round
  std::string error;
};

void say(const Json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

// The times in an answer. Empty if it has none, or if they are not numbers.
std::vector<double> times_in(const Json& answer) {
  const auto ms = answer.find("ms");
  if (ms == answer.end() || !ms->is_array()) return {};
  std::vector<double> times;
  for (const Json& one : *ms) {
    if (!one.is_number()) return {};
    times.push_back(one);
  }
  return times;
}

class Coordinator {
 public:
  explicit Coordinator(Options options)
      : options_(std::move(options)),
        cases_(wanted_cases(options_)),
        end_(bench::wall_seconds() + options_.seconds) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    ours_.name = "annulus";
    ours_.command = {self, "--serve", "--device", options_.device};
    if (options_.tiny) ours_.command.push_back("--tiny");
    ours_.starts_left = INT_MAX;
    for (const Peer& peer : options_.peers) {
      Contestant made;
      made.name = peer.name;
      made.command = {"/bin/sh", "-c", peer.command};
      made.starts_left = kPeerStartsAgain;
      peers_.push_back(std::move(made));
    }
  }

  int run() {
    const double peers_until = bench::wall_seconds() + options_.patience;
    start(ours_);
    for (Contestant& peer : peers_) start(peer);
    ours_.starts_left = 0;  // if it cannot start once, it is not started again
    greet(ours_, 2 * patience(ours_));
    if (left() <= 0) return 0;
    if (!ours_.ready) {
      std::fprintf(stderr, "gpu_bench: the library's process for %s %s\n", options_.device.c_str(),
                   ours_.why.c_str());
      return 1;
    }
    ours_.starts_left = INT_MAX;
    measure_copy();
    for (Contestant& peer : peers_) greet(peer, peers_until - bench::wall_seconds());
    bool has_gemm = measure_gemm();

    std::vector<std::pair<const GpuCase*, std::vector<Contestant*>>> again;
    std::vector<Contestant*> late;
    for (const GpuCase& one : cases_) {
      if (left() <= 0) break;
      std::vector<Contestant*> at_once = {&ours_}, missed;
      for (Contestant& peer : peers_) {
        greet(peer, 0);
        if (!peer.late()) at_once.push_back(&peer);
        if (peer.starting()) missed.push_back(&peer);
      }
      has_gemm = has_gemm || measure_gemm();
      measure(one, at_once, false);
      if (!missed.empty()) again.emplace_back(&one, missed);
    }
    if (!has_gemm) {
      say({{"ceiling", "gemm"}, {"error", "no peer that can measure a matrix product is ready"}});
    }
    for (const auto& [one, missed] : again) measure_again(*one, missed, false);
    for (Contestant& peer : peers_) late.push_back(&peer);
    for (const GpuCase& one : cases_) {
      if (one.late_peers) measure_again(one, late, true);
    }
    return 0;
  }

 private:
  // The longest time for an answer of a contestant, from the options. A simulated device is slower
  // than a GPU by orders of magnitude.
  double patience(const Contestant& one) const {
    const bool slow = &one == &ours_ && options_.device.starts_with("sim:");
    return (slow ? 10 : 1) * options_.patience;
  }
  double left() const { return end_ - bench::wall_seconds(); }

  void start(Contestant& one) {
    one.ready = false;
    one.process = std::make_unique<GpuProcess>(one.command);
    one.why = "has not started yet";
  }

  // Ends a process that can no longer be used, and starts it again if that is allowed.
  void drop(Contestant& one, const std::string& why) {
    std::fprintf(stderr, "%s %s\n", one.name.c_str(), why.c_str());
    one.process.reset();
    one.ready = false;
    if (one.starts_left > 0 && left() > 0) {
      --one.starts_left;
      start(one);
      one.why = "has not started again yet since it " + why;
    } else {
      one.why = why + ", and is not started again";
    }
  }

  // Waits for the greeting of a process that has not sent it yet.
  void greet(Contestant& one, double seconds) {
    if (!one.starting()) return;
    const GpuProcess::Line line = one.process->next_line(std::max(0.0, std::min(seconds, left())));
    if (line.object) {
      one.greeting = *line.object;
      one.ready = true;
      one.why.clear();
    } else if (!line.broken.empty()) {
      drop(one, line.broken + " before it was ready");
    }
  }

  // The answer to a question, which is an object. If there is no valid answer, the result is
  // {"error": ...} and the process is killed.
  Json ask(Contestant& one, const Json& question, double seconds) {
    if (!one.ready) return {{"error", one.why}};
    one.process->ask(question);
    return answer(one, question, seconds);
  }
  Json answer(Contestant& one, const Json& question, double seconds) {
    const bool hurried = left() < seconds;
    const GpuProcess::Line line = one.process->next_line(std::max(0.0, std::min(seconds, left())));
    if (line.object) return *line.object;
    const std::string asked = question.at("ask");
    const std::string why =
        !line.broken.empty() ? fmt::format("{} when it should {}", line.broken, asked)
        : hurried            ? fmt::format("had no time left to {}", asked)
                             : fmt::format("did not {} within {} s and was killed", asked, seconds);
    drop(one, why);
    return {{"error", why}};
  }

  Json state() {
    return ask(ours_, {{"ask", "state"}}, patience(ours_) / 4).value("state", Json());
  }

  void measure_copy() {
    Json line = ask(ours_, {{"ask", "copy"}}, 2 * patience(ours_));
    line["ceiling"] = "copy";
    for (const char* field :
         {"version", "device", "architecture", "simulated", "multiprocessors", "driver", "nvrtc"}) {
      line[field] = ours_.greeting.value(field, Json());
    }
    say(line);
  }

  // Measures the ceiling with a peer that can measure a matrix product. Returns false if no such
  // peer is ready.
  bool measure_gemm() {
    const auto able = std::ranges::find_if(
        peers_, [](const Contestant& one) { return one.ready && one.says("gemm"); });
    if (able == peers_.end()) return false;
    Json line = {{"ceiling", "gemm"}, {"before", state()}};
    const Json question = {{"ask", "gemm"}};
    able->process->ask(question);
    // Keeps the state with the highest power during the computation. Earlier states belong to its
    // preparation.
    Json during;
    const double until = bench::wall_seconds() + 2 * patience(*able);
    GpuProcess::Line said;
    while (!said.object && said.broken.empty() && bench::wall_seconds() < until && left() > 0) {
      const Json now = state();
      const bool higher = now.is_object() && (during.is_null() || now["watts"] > during["watts"]);
      if (higher) during = now;
      said = able->process->next_line(0.02);
    }
    if (said.object) {
      line.update(*said.object);
    } else {
      const std::string why =
          said.broken.empty() ? "did not measure a product in time" : said.broken;
      line["error"] = able->name + " " + why;
      drop(*able, why);
    }
    line["during"] = during;
    say(line);
    return true;
  }

  // Measures a case again with the peers that are ready now and that are late, or not late, as
  // `late` states.
  void measure_again(const GpuCase& one, const std::vector<Contestant*>& peers, bool late) {
    std::vector<Contestant*> these = {&ours_};
    for (Contestant* peer : peers) {
      greet(*peer, 0);
      if (peer->ready && peer->late() == late) these.push_back(peer);
    }
    if (these.size() > 1 && left() > 0) measure(one, these, true);
  }

  // Loads a case in a process.
  void load(Series& series, const GpuCase& one, const std::string& indices, Json& facts) {
    Contestant& of = *series.of;
    const Json question = {
        {"ask", "load"}, {"problem", bench::describe(one)}, {"indices", indices}};
    const Json said = ask(of, question, (of.late() ? 6 : 1) * patience(of));
    if (said.contains("error")) {
      series.error = said["error"].is_string() ? said["error"] : Json(said["error"].dump());
      return;
    }
    const Json first = said.value("first_ms", Json()), later = said.value("ms", Json());
    if (!first.is_number() || !later.is_number()) {
      series.error =
          fmt::format("answered '{}' to load, without first_ms and ms", said.dump().substr(0, 80));
      drop(of, series.error);
      return;
    }
    series.loaded = true;
    series.first_ms = first;
    series.ms = later;
    if (&of == &ours_) facts = said.value("facts", Json::object());
  }

  // Measures one value of a round.
  void measure_round(Series& series, bool cold, int runs, Json& states) {
    Contestant& of = *series.of;
    const Json said =
        ask(of, {{"ask", "measure"}, {"cold", cold}, {"runs", runs}}, patience(of) / 4);
    const std::vector<double> times = times_in(said);
    if (!times.empty()) {
      (cold ? series.cold_ms : series.warm_ms).push_back(bench::median(times));
      if (&of == &ours_ && !cold) states.push_back(said.value("state", Json()));
      return;
    }
    series.loaded = false;
    if (said.contains("error")) {
      series.error = said["error"].is_string() ? said["error"] : Json(said["error"].dump());
      return;
    }
    series.error = fmt::format("answered '{}' to measure, without ms", said.dump().substr(0, 80));
    drop(of, series.error);
  }

  void measure(const GpuCase& one, const std::vector<Contestant*>& contestants, bool again) {
    greet(ours_, patience(ours_));  // the library's process may have been started again
    if (ours_.starting() && left() > 0) {
      drop(ours_, fmt::format("did not start within {} s and was killed", patience(ours_)));
    }
    const IndexFile indices(one);
    std::vector<Series> all;
    Json facts = Json::object(), states = Json::array();
    double together = 0;
    for (Contestant* of : contestants) {
      Series& series = all.emplace_back();
      series.of = of;
      load(series, one, indices.name(), facts);
      if (series.loaded) together += series.ms;
    }
    const int runs =
        static_cast<int>(std::clamp(kCaseMillis / std::max(1e-9, 2 * options_.rounds * together),
                                    1.0, static_cast<double>(options_.runs)));
    int rounds = 0;
    for (; rounds < options_.rounds && left() > 0; ++rounds) {
      for (const bool cold : {false, true}) {
        for (Series& series : all) {
          if (series.loaded) measure_round(series, cold, runs, states);
        }
      }
    }
    for (Series& series : all) {
      if (series.loaded && series.cold_ms.empty()) series.error = "had no time left to measure";
    }

    Json line = bench::describe(one);
    line.update(facts);
    line["device"] = ours_.greeting.value("device", "");
    line["simulated"] = ours_.greeting.value("simulated", false);
    line["rounds"] = rounds;
    line["runs"] = runs;
    line["state"] = states;
    line["bars"] = bars(one);
    if (again) line["again"] = true;
    for (const Series& series : all) {
      Json program = {{"warm_ms", series.warm_ms},
                      {"cold_ms", series.cold_ms},
                      {"version", series.of->greeting.value("version", Json())},
                      {"error", series.error}};
      if (series.first_ms > 0) program["first_ms"] = series.first_ms;
      line["programs"][series.of->name] = program;
    }
    say(line);
    tell(one, all);
  }

  static Json bars(const GpuCase& one) {
    Json bars = Json::object();
    const bench::GpuProblem& of = one.attention;
    if (of.bar_tflops > 0) bars["tflops"] = of.bar_tflops;
    // The target for the time of `dense` x density divided by the case's own time.
    if (of.bar_share > 0) bars["share_of_dense"] = {{"dense", of.dense}, {"share", of.bar_share}};
    if (one.bar_memory > 0) bars["share_of_copy"] = one.bar_memory;
    return bars;
  }

  static void tell(const GpuCase& one, const std::vector<Series>& all) {
    std::string text;
    for (const Series& series : all) {
      const std::string name = series.of->name;
      if (series.warm_ms.empty()) {
        text += fmt::format("  {}: {}", name, series.error);
        continue;
      }
      const double ms = bench::median(series.warm_ms);
      text += fmt::format("  {} {:.4f} ms, cold {:.4f}", name, ms, bench::median(series.cold_ms));
      if (one.attention.flop > 0)
        text += fmt::format(", {:.0f} TFLOP/s", one.attention.flop / ms / 1e9);
      text += fmt::format(", {:.2f} TB/s", one.least_bytes / ms / 1e9);
    }
    std::fprintf(stderr, "%s:%s\n", one.name().c_str(), text.c_str());
  }

  Options options_;
  std::vector<GpuCase> cases_;
  double end_;
  Contestant ours_;
  std::vector<Contestant> peers_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (options.serve) {
      bench::serve_gpu_cases(options.device, options.tiny);
    } else if (options.plan_only) {
      return bench::plan_gpu_cases(options.device, wanted_cases(options)) ? 0 : 1;
    } else if (!options.compile_into.empty()) {
      bench::compile_gpu_cases(options.compile_into, {"h100", "h200"}, wanted_cases(options));
    } else if (options.list) {
      for (const GpuCase& one : wanted_cases(options)) std::printf("%s\n", one.name().c_str());
    } else {
      return Coordinator(options).run();
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
