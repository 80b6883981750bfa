// annulus tune: finds the best configuration for shapes on a device, and stores it.
#include "annulus/tune.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <set>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "program/cli/interruption.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/verb.h"
#include "program/input/batch_input.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/input/shapes.h"
#include "program/run/ring_run.h"

namespace annulus::program {
namespace {

struct TuneArguments {
  DeviceArguments device;
  ProblemArguments shape;
  std::string shapes;  // a file or the name of a preset; empty: the one shape of the options
  bool given = false;  // whether an option gives something to tune
  std::string carry = "none";
  BatchArguments batch;  // used in place of a shape if it has requests
  int ranks = 0;         // ranks of a ring whose step is tuned; 0: the shape itself is tuned
  std::string shard = "zigzag";
  double time_limit_seconds = 0;
  bool exhaustive = false;
  bool force = false;
  bool dry_run = false;
  bool cold_cache = false;
  bool keep_journal = false;
  std::string model;    // the name of a model of annulus/kernels.h, in place of shapes
  bool models = false;  // list them
  std::string replay;   // a journal to decide from again; empty: tune
  bool json = false;
};

// The outcome of one search.
struct Outcome {
  const Tunable* of = nullptr;
  std::string status;  // "tuned", "partial", "there already", "planned", "not begun", "failed"
  TuneResult result = {};
  std::string error = {};  // set if status is "failed" or "not begun"
  Exit exit = Exit::kOk;
  bool ends_all = false;  // an error that concerns all searches
};

// The text for an outcome. If a shape has several searches, it names the part of the shape.
std::string text_of(const Tunable& what, const TuneResult& result) {
  struct Text {
    const TuneResult& result;
    std::string operator()(const Problem& problem) const { return problem_text(problem); }
    std::string operator()(const BatchInput& batch) const {
      return batch_text(batch) + (result.shape.empty() ? "" : "\n" + result.shape);
    }
  };
  return std::visit(Text{result}, what);
}

base::Json json_of(const Tunable& what) {
  struct Text {
    base::Json operator()(const Problem& problem) const {
      return {{"problem", problem_json(problem)},
              {"carry_in", problem.carry_in},
              {"carry_out", problem.carry_out}};
    }
    base::Json operator()(const BatchInput& batch) const {
      return {{"batch", batch_json(batch)},
              {"carry_in", batch.problem.carry_in},
              {"carry_out", batch.problem.carry_out}};
    }
  };
  return std::visit(Text{}, what);
}

std::vector<TuneResult> tune_all(const Device& device, const Tunable& what,
                                 const TuneOptions& options) {
  struct Search {
    const Device& device;
    const TuneOptions& options;
    std::vector<TuneResult> operator()(const Problem& problem) const {
      return {annulus::tune(device, problem, options)};
    }
    std::vector<TuneResult> operator()(const BatchInput& batch) const {
      const std::vector<StepRequests> step = batch.step();
      if (step.empty() && !batch.requests.empty()) {
        base::fail(ErrorCode::kInvalidArgument,
                   "no request has both queries and keys, so there is nothing to tune");
      }
      return tune_batch(device, batch.problem, step, options);
    }
  };
  return std::visit(Search{device, options}, what);
}

const char* status_text(TuneStatus status) {
  switch (status) {
    case TuneStatus::kTuned:
      return "tuned";
    case TuneStatus::kPartial:
      return "partial";
    case TuneStatus::kAlreadyThere:
      return "there already";
    case TuneStatus::kPlanned:
      return "planned";
  }
  return "unknown status";
}

// An invalid or too large shape fails alone. Any other error ends the whole run.
bool only_this_shape(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnsupported ||
         code == ErrorCode::kOutOfMemory;
}

// An upper bound for the remaining time of a search, from the pace of its last candidates. Earlier
// candidates do not count, because a search that resumes from a journal gets its first candidates
// at once.
class Pace {
 public:
  // A text such as ", at most 40 s more". It is empty at first.
  std::string more_text(const TuneProgress& at, double limit_seconds) {
    constexpr std::size_t kLast = 16;
    last_.emplace_back(at.done, at.seconds);
    if (last_.size() > kLast) last_.pop_front();
    const auto [done, seconds] = last_.front();
    if (at.done <= done) return {};
    double more = (at.seconds - seconds) / (at.done - done) * (at.most - at.done);
    if (limit_seconds > 0) more = std::min(more, std::max(0.0, limit_seconds - at.seconds));
    return fmt::format(", at most {:.0f} s more", std::ceil(more));
  }

 private:
  std::deque<std::pair<int, double>> last_;  // candidates done, and the seconds at that time
};

Exit exit_of(const TuneResult& result) {
  if (!result.problem.empty()) return Exit::kInvalidFile;
  return result.status == TuneStatus::kPartial ? Exit::kPartial : Exit::kOk;
}

TuneOptions options_of(const TuneArguments& arguments, double seconds_left,
                       const std::atomic<bool>& interrupted, Progress* progress, Pace* pace) {
  TuneOptions options;
  options.time_limit_seconds = seconds_left;
  options.cancel = &interrupted;
  options.exhaustive = arguments.exhaustive;
  options.force = arguments.force;
  options.dry_run = arguments.dry_run;
  options.cold_cache = arguments.cold_cache;
  options.keep_journal = arguments.keep_journal;
  options.seed = arguments.shape.seed;
  options.progress = [=](const TuneProgress& at) {
    // The most important number comes first, because a narrow terminal cuts the end of the line.
    progress->say(fmt::format("{}/{} tried, best {:.3f}, {:.0f} s{}: {}", at.done, at.most,
                              at.best_ratio, at.seconds, pace->more_text(at, seconds_left),
                              at.best));
  };
  return options;
}

// One outcome, or for a batch one outcome for each class of its requests. An error that concerns
// all searches is thrown, unless earlier searches have outcomes to report. Then the error is an
// outcome.
std::vector<Outcome> tune_one(const Device& device, const Tunable& what,
                              const TuneArguments& arguments, double seconds_left,
                              const std::string& which, bool first,
                              const std::atomic<bool>& interrupted) {
  Progress progress("tuning " + which);
  Pace pace;
  const TuneOptions options = options_of(arguments, seconds_left, interrupted, &progress, &pace);
  std::vector<Outcome> outcomes;
  try {
    for (TuneResult& result : tune_all(device, what, options)) {
      outcomes.push_back({&what, status_text(result.status)});
      outcomes.back().exit = exit_of(result);
      outcomes.back().result = std::move(result);
    }
  } catch (const Error& error) {
    const bool ends_all = !only_this_shape(error.code());
    if (ends_all && first) throw;
    outcomes.push_back({&what, "failed", {}, error.what(), exit_code(error.code()), ends_all});
  }
  return outcomes;
}

base::Json json_of(const TuneResult& result);

base::Json json_of(const Outcome& outcome) {
  base::Json json = json_of(*outcome.of);
  json["status"] = outcome.status;
  if (outcome.status == "failed") {
    json["error"] = outcome.error;
  } else if (outcome.status != "not begun") {
    json.update(json_of(outcome.result));
  }
  return json;
}

base::Json json_of(const TuneResult& result) {
  base::Json json;
  json["shape"] = result.shape;
  json["config"] = result.config;
  json["default_config"] = result.default_config;
  json["runner_up"] = result.runner_up;
  json["predicted"] = result.predicted;
  const char* unit = result.predicted ? "predicted_cycles" : "micros";
  json[unit] = number(result.time);
  json[std::string("default_") + unit] = number(result.default_time);
  json["ratio"] = number(result.ratio);
  json["ratio_low"] = number(result.ratio_low);
  json["ratio_high"] = number(result.ratio_high);
  json["other_ratio"] = number(result.other_ratio);
  json["repeated_rounds"] = result.repeated_rounds;
  json["slowed"] = result.slowed;
  json["candidates"] = result.candidates;
  json["tried"] = result.tried;
  json["dropped"] = result.dropped;
  json["resumed"] = result.resumed;
  json["seconds"] = result.seconds;
  json["path"] = result.path;
  json["journal"] = result.journal;
  json["problem_of_path"] = result.problem;
  if (!result.problem.empty()) {
    json["file_name"] = result.file_name;
    json["file"] = result.file;
  }
  json["trials"] = base::Json::array();
  for (const TuneCandidate& trial : result.trials) {
    base::Json each = {{"config", trial.config},
                       {"model_cycles", number(trial.model_cycles)},
                       {"outcome", trial.outcome}};
    if (trial.outcome == "tried") {
      each[unit] = number(trial.time);
      each["ratio"] = number(trial.ratio);
    }
    json["trials"].push_back(std::move(each));
  }
  return json;
}

void print_detail(const std::string& name, const std::string& text) {
  std::printf("  %-8s %s\n", name.c_str(), text.c_str());
}

// Prints the first candidates, in the order in which a search would try them.
void print_planned(const TuneResult& result) {
  print_detail("planned", fmt::format("{} candidates, the default is {}", result.candidates,
                                      result.default_config));
  std::vector<const TuneCandidate*> order;
  for (const TuneCandidate& trial : result.trials) order.push_back(&trial);
  std::ranges::stable_sort(
      order, [](const auto* a, const auto* b) { return a->model_cycles < b->model_cycles; });
  if (order.size() > 10) order.resize(10);
  for (const TuneCandidate* trial : order) {
    print_detail("", fmt::format("{:<28} {:.0f} cycles by the static model (predicted)",
                                 trial->config, trial->model_cycles));
  }
}

void print_times(const TuneResult& result) {
  if (result.config == result.default_config) {
    print_detail("gain", "none beyond the noise: the default stays");
  } else {
    print_detail("gain",
                 fmt::format("{:.3f} of the default's {} ({:.3f} to {:.3f}); the default is {}",
                             result.ratio, result.predicted ? "predicted cycles" : "time",
                             result.ratio_low, result.ratio_high, result.default_config));
  }
  print_detail("time",
               fmt::format("{:.1f} {}, the default's {:.1f}", result.time,
                           result.predicted ? "predicted cycles" : "us", result.default_time));
}

void print(const Outcome& outcome) {
  const TuneResult& result = outcome.result;
  std::printf("%s\n", text_of(*outcome.of, result).c_str());
  if (outcome.status == "failed") return print_detail(outcome.status, "as printed on stderr");
  if (outcome.status == "not begun") return print_detail(outcome.status, outcome.error);
  if (outcome.status == "planned") return print_planned(result);
  if (outcome.status == "partial" && result.tried == 0) {
    return print_detail("partial",
                        fmt::format("it ended before anything was tried; {} stays{}{}",
                                    result.path.empty() ? "the default" : "the last result",
                                    result.config.empty() ? "" : ": ", result.config));
  }
  print_detail(outcome.status, result.config);
  print_times(result);
  if (result.candidates > 0) {
    print_detail("tried", fmt::format("{} of {}, {} dropped, in {:.1f} s", result.tried,
                                      result.candidates, result.dropped, result.seconds));
  }
  if (result.resumed > 0) {
    print_detail("resumed", fmt::format("{} of them are from the journal of an earlier search",
                                        result.resumed));
  }
  if (result.other_ratio > 0) {
    print_detail("L2", fmt::format("{:.3f} of the default's time with L2 in its other state",
                                   result.other_ratio));
  }
  if (result.repeated_rounds > 0) {
    print_detail("repeated",
                 fmt::format("{} rounds, in which the device was slower than it can be{}",
                             result.repeated_rounds,
                             result.slowed ? "; it stayed so: is it throttled, or shared?" : ""));
  }
  if (!result.journal.empty()) print_detail("journal", result.journal);
  for (const TuneCandidate& trial : result.trials) {
    if (trial.outcome == "tried" || trial.outcome == "not tried") continue;
    print_detail("dropped", printable(trial.config + ": " + trial.outcome));
  }
  print_detail("kept in", !result.path.empty()      ? result.path
                          : !result.problem.empty() ? "memory only: " + result.problem
                                                    : std::string("no file"));
  if (!result.problem.empty()) {
    print_detail("to keep", fmt::format("write the next {} lines to FOLDER/{}, where FOLDER is "
                                        "one of tuned results",
                                        std::ranges::count(result.file, '\n'), result.file_name));
    std::printf("%s", result.file.c_str());
  }
}

base::Json json_of(const Device& device, const std::vector<Outcome>& outcomes) {
  base::Json json;
  json["device"] = device.info().name;
  json["simulated"] = device.info().simulated;
  json["tuned_path"] = device.info().tuned_path;
  json["results"] = base::Json::array();
  for (const Outcome& outcome : outcomes) json["results"].push_back(json_of(outcome));
  return json;
}

// Decides again from a journal. It opens no device.
Exit replay_journal(const TuneArguments& arguments) {
  const TuneResult result = annulus::replay_tuning(arguments.replay);
  const Exit exit = result.status == TuneStatus::kPartial ? Exit::kPartial : Exit::kOk;
  if (arguments.json) {
    base::Json json = json_of(result);
    json["status"] = status_text(result.status);
    print_json(json);
    return exit;
  }
  std::printf("%s\n", printable(result.shape).c_str());
  print_detail(status_text(result.status), result.config);
  print_times(result);
  print_detail("tried", fmt::format("{} of {}, {} dropped", result.tried, result.candidates,
                                    result.dropped));
  return exit;
}

std::string window_text(const Model& model) {
  switch (model.windowed) {
    case Model::Layers::kNone:
      return "";
    case Model::Layers::kSome:
      return fmt::format(", window {} in some", model.window);
    case Model::Layers::kAll:
      return fmt::format(", window {}", model.window);
  }
  return "";
}

Exit list_models(const TuneArguments& arguments) {
  base::Json json = base::Json::array();
  for (const Model& model : known_models()) {
    if (arguments.json) {
      json.push_back({{"name", model.name},
                      {"repository", model.repository},
                      {"heads", model.heads},
                      {"kv_heads", model.kv_heads},
                      {"dim_qk", model.dim_qk},
                      {"dim_v", model.dim_v},
                      {"context", model.context},
                      {"window", model.window},
                      {"windowed", model.windowed == Model::Layers::kSome  ? "some"
                                   : model.windowed == Model::Layers::kAll ? "all"
                                                                           : "none"},
                      {"softcap", model.softcap},
                      {"sinks", model.sinks},
                      {"shapes", problems_of(model).size()}});
      continue;
    }
    std::printf(
        "%s\n",
        fmt::format("{:<16} H{} Hkv{} D{}, context {}{}{}{}", model.name, model.heads,
                    model.kv_heads, dims_text(model.dim_qk, model.dim_v), model.context,
                    window_text(model),
                    model.softcap > 0 ? fmt::format(", softcap {}", model.softcap) : std::string(),
                    model.sinks ? ", sinks" : "")
            .c_str());
  }
  if (arguments.json) print_json({{"models", std::move(json)}});
  return Exit::kOk;
}

std::vector<Tunable> what_arguments_say(const TuneArguments& arguments) {
  if (!arguments.model.empty()) {
    const std::vector<Problem> problems = read_model(arguments.model);
    return {problems.begin(), problems.end()};
  }
  if (!arguments.shapes.empty()) return read_shapes(arguments.shapes);
  if (arguments.batch.given()) {
    return {make_batch(arguments.shape, arguments.batch, arguments.carry)};
  }
  const Problem problem = make_shape(arguments.shape, arguments.carry);
  if (arguments.ranks == 0) return {problem};
  if (problem.carry_in || problem.carry_out) {
    base::fail(ErrorCode::kInvalidArgument,
               "--carry is {}, but a ring carries its state itself; leave it out with --ranks",
               arguments.carry);
  }
  return {ring_step(problem, ring_shards(arguments.shard, problem, arguments.ranks))};
}

void print_device(const Device& device) {
  print_line(
      "device",
      fmt::format("{} ({}{})", device.info().name, device.info().description,
                  device.info().simulated
                      ? ", simulated: times are predicted, and only simulated devices use them"
                      : ""));
}

// Reports each outcome as soon as it is known. The exit code of a failure takes precedence over the
// exit code for unfinished searches.
class Report {
 public:
  Report(const Device& device, bool json) : device_(device), json_(json) {}

  void add(Outcome outcome) {
    if (outcome.exit != Exit::kOk && (exit_ == Exit::kOk || exit_ == Exit::kPartial)) {
      exit_ = outcome.exit;
    }
    if (outcome.status == "failed") {
      std::fflush(stdout);
      std::fprintf(stderr, "annulus tune: %s: %s\n", text_of(*outcome.of, outcome.result).c_str(),
                   outcome.error.c_str());
    }
    if (!json_) {
      if (outcomes_.empty()) print_device(device_);
      print(outcome);
      std::fflush(stdout);
    }
    outcomes_.push_back(std::move(outcome));
  }

  Exit end() const {
    if (json_) print_json(json_of(device_, outcomes_));
    return exit_;
  }

 private:
  const Device& device_;
  const bool json_;
  std::vector<Outcome> outcomes_;
  Exit exit_ = Exit::kOk;
};

Exit tune_what_is_given(const TuneArguments& arguments) {
  if (!arguments.given) {
    base::fail(ErrorCode::kInvalidArgument,
               "no problem is given; give one, as in --heads 32 --seq 4096 --pattern "
               "causal, --model with a name, or --shapes with a file, small or common");
  }
  const std::vector<Tunable> all = what_arguments_say(arguments);
  const Interruption interruption;
  const std::atomic<bool>& interrupted = interruption.arrived();
  const Device device = Device::open(device_options(arguments.device));
  const auto start = std::chrono::steady_clock::now();
  Report report(device, arguments.json);
  bool ended = false;
  for (const Tunable& what : all) {
    const double spent =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double left = arguments.time_limit_seconds - spent;
    const bool late = arguments.time_limit_seconds > 0 && left <= 0;
    if (ended || interrupted || late) {
      const char* const why = ended         ? "an error ended the search before"
                              : interrupted ? "interrupted"
                                            : "the time is over";
      report.add({&what, "not begun", {}, why, Exit::kPartial});
      continue;
    }
    const std::string which = fmt::format("{} of {}", &what - all.data() + 1, all.size());
    for (Outcome& outcome :
         tune_one(device, what, arguments, arguments.time_limit_seconds > 0 ? left : 0, which,
                  &what == all.data(), interrupted)) {
      ended = ended || outcome.ends_all;
      report.add(std::move(outcome));
    }
  }
  return report.end();
}

Exit tune(const TuneArguments& arguments) {
  if (arguments.models) return list_models(arguments);
  if (!arguments.replay.empty()) return replay_journal(arguments);
  return tune_what_is_given(arguments);
}

void add_options(CLI::App& app, TuneArguments* arguments) {
  add_device(app, &arguments->device);
  std::set<std::string> of_device;
  for (const CLI::Option* option : app.get_options()) of_device.insert(option->get_name());
  add_shape_options(app, &arguments->shape, &arguments->carry);
  CLI::Option* ranks =
      app.add_option("--ranks", arguments->ranks,
                     "tune for a ring of this many ranks around the problem, on the device of one")
          ->type_name("RANKS")
          ->check(number_of_type<int>())
          ->check(CLI::Range(1, kMaxRanks));
  add_shard(app, &arguments->shard)->needs(ranks);
  add_batch(app, &arguments->batch);
  add_bounds(app, &arguments->batch);
  const std::vector<CLI::Option*> of_shape = app.get_options();
  CLI::Option* shapes =
      app.add_option("--shapes", arguments->shapes,
                     "a file with one shape on each line, as options; or a preset: small, common")
          ->type_name(kFile)
          ->check(not_empty());
  CLI::Option* model = app.add_option("--model", arguments->model,
                                      "the shapes of a model by its name, as llama-3-8b")
                           ->type_name("NAME")
                           ->check(not_empty())
                           ->excludes(shapes);
  CLI::Option* replay = app.add_option("--replay", arguments->replay,
                                       "a journal: decide again from its times, without a device")
                            ->type_name(kFile)
                            ->check(not_empty());
  replay->excludes(shapes)->excludes(model);
  // A line of --shapes describes its whole shape, and so does a journal. So options of a shape are
  // excluded.
  std::vector<const CLI::Option*> problem = {shapes, model};
  for (CLI::Option* option : of_shape) {
    if (of_device.contains(option->get_name())) continue;
    shapes->excludes(option);
    replay->excludes(option);
    model->excludes(option);
    problem.push_back(option);
  }
  app.final_callback([problem, arguments] {
    arguments->given =
        std::ranges::any_of(problem, [](const CLI::Option* option) { return option->count() > 0; });
  });
  app.add_option("--time-limit", arguments->time_limit_seconds,
                 "of all shapes together, as 90s, 10m or 1.5h; the best so far is kept")
      ->type_name("TIME")
      ->transform(duration());
  app.add_flag("--exhaustive", arguments->exhaustive, "try every configuration of the space");
  app.add_flag("--force", arguments->force, "tune again problems that have results");
  app.add_flag("--dry-run", arguments->dry_run, "print what would be tried; run and write nothing");
  app.add_flag("--cold-cache", arguments->cold_cache, "empty L2 before each measured launch");
  add_number(app, "--seed", &arguments->shape.seed, "of random operands");
  app.add_flag("--models", arguments->models, "list the names that --model takes; tune nothing");
  app.add_flag(
      "--keep-journal", arguments->keep_journal,
      "keep the journal of a search that ended next to its result; annulus tune report reads it");
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_tune = {
    "tune",
    "find the fastest configuration for problems, and keep it",
    {"annulus tune --heads 32 --kv-heads 8 --seq 4096 --pattern causal --time-limit 10m",
     "annulus tune --shapes common --dry-run", "annulus tune --model llama-3-8b",
     "annulus tune --most-requests 64 --most-keys-of-one 8192 -p causal --dry-run"},
    add_verb<TuneArguments, add_options, tune>};

}  // namespace annulus::program
