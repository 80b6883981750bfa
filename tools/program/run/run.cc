// annulus run: plans a problem, runs it, and compares the answer with the oracle.
#include "program/run/run.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "annulus/kernels.h"
#include "annulus/oracle.h"
#include "base/fail.h"
#include "base/files.h"
#include "program/cli/interruption.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/run/launcher.h"
#include "program/run/operands.h"
#include "program/run/ring_processes.h"
#include "program/run/ring_run.h"
#include "program/run/run_result.h"
#include "program/run/stream.h"

namespace annulus::program {
namespace {

using Clock = std::chrono::steady_clock;

// Checks before the computation, which may take minutes, that its output files can be written.
void check_can_write(const RunArguments& arguments) {
  const ProblemArguments& problem = arguments.problem;
  std::vector<std::string> read = {problem.input};
  if (!arguments.output.empty() || !arguments.picture.empty()) {
    for (const std::string& text : {problem.pattern, problem.score}) {
      for (std::string& file : files_named_in(text)) read.push_back(std::move(file));
    }
  }
  check_is_new("--output", arguments.output, read);
  check_is_svg("--picture", arguments.picture);
  base::FileSystem files;
  for (const std::string& path : {arguments.output, arguments.picture}) {
    if (!path.empty()) base::check_can_write(files, path);
  }
  read.push_back(arguments.output);
  check_is_new("--picture", arguments.picture, read);
}

Answer compute(const Device& device, const Plan& plan, const ProblemInput& input, int repeat) {
  const Problem& problem = input.problem;
  Answer answer;
  answer.o = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_v, input.order);
  // Every element gets a mark, so an element that the kernel does not write cannot pass as an
  // answer.
  std::fill(answer.o.bits.begin(), answer.o.bits.end(), std::uint16_t{0x7fff});
  DeviceOperands memory = upload(device, input.q, input.k, input.v, answer.o);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  {
    const Waiting waiting(fmt::format("running on {}", device.info().name));
    for (int i = 0; i < repeat; ++i) {
      answer.millis.push_back(
          timed_millis(device, [&] { plan.run(nullptr, memory.operands, workspace.data()); }));
    }
  }
  device.copy_to_host(answer.o.bits.data(), memory.o.data(), answer.o.bytes());
  answer.lse.resize(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));
  device.copy_to_host(answer.lse.data(), memory.lse.data(), answer.lse.size() * sizeof(float));
  return answer;
}

// Marks all rows of a (batch, head) if any of its rows is marked.
void widen_to_heads(std::vector<std::uint8_t>* rows, std::int64_t seq_q) {
  for (auto head = rows->begin(); head != rows->end(); head += seq_q) {
    if (std::find(head, head + seq_q, 1) != head + seq_q) std::fill(head, head + seq_q, 1);
  }
}

// With `ring`, the tiles belong to the shards and not to the plan, so a NaN may reach any row of a
// head.
Checked check(const ProblemInput& input, const PlanInfo& plan, const Answer& answer, bool ring) {
  const Problem& problem = input.problem;
  const HostInputs inputs = host_inputs(input.q, input.k, input.v);
  ReferenceOptions options;
  options.tile_rows = plan.tile_rows;
  Progress progress("checking against the float64 oracle");
  options.progress = [&](double share) { progress.update(share); };
  const Reference oracle = reference(problem, inputs, options);
  HostResult result;
  result.o = answer.o.bits.data();
  result.o_strides = answer.o.strides();
  result.lse = answer.lse.data();
  std::vector<std::uint8_t> reached =
      reached_rows(problem, inputs, plan.tile_rows, plan.tile_columns);
  if (reached.empty()) return {compare(problem, oracle, result), oracle.sampled()};
  if (ring) widen_to_heads(&reached, problem.seq_q);
  const auto excused = [&](std::int64_t row) {
    return reached[static_cast<std::size_t>(row)] != 0;
  };
  return {compare(problem, oracle, result, excused), oracle.sampled()};
}

// Checks the rules between the options of a ring that the parser does not check.
void check_ring_options(const RunArguments& arguments) {
  const bool launched = arguments.ranks == kLaunchedRanks;
  const bool apart = launched || arguments.processes;
  const struct {
    bool refused;
    const char* text;
  } rules[] = {
      {launched && arguments.processes, "--processes does not go with --ranks env"},
      {apart && !arguments.picture.empty(),
       "--picture needs all ranks in one process: other processes have only their own schedule"},
      {!launched && !arguments.rendezvous.empty(), "--rendezvous needs --ranks env"},
      {!apart && arguments.deadline.has_value(), "--deadline needs --processes or --ranks env"},
      {!apart && arguments.go_on, "--go-on needs --processes or --ranks env"},
      {arguments.no_wait && (launched || arguments.ranks > 1),
       "--no-wait needs a run of one rank: a ring has no general kernel"},
      {arguments.no_wait && arguments.batch.requests.has_value(),
       "--no-wait needs a run of one problem: a batch has no general kernel"},
  };
  for (const auto& rule : rules) {
    if (rule.refused) base::fail(ErrorCode::kInvalidArgument, "{}", rule.text);
  }
}

// The rank of this process, if it was started as one of several.
std::optional<Seat> seat_of(const RunArguments& arguments) {
  if (!arguments.seat.empty()) return started_seat(arguments.seat, arguments.ranks);
  if (arguments.ranks == kLaunchedRanks) return launched_seat(arguments.rendezvous);
  return std::nullopt;
}

Device device_of(const RunArguments& arguments, const std::optional<Seat>& seat) {
  if (!seat) return Device::open(device_options(arguments.device));
  if (arguments.seat.empty()) return launched_device(arguments.device, seat->on_host);
  const std::string first = choose_device(arguments.device.name).name;
  return numbered_device(arguments.device, kind_of_device(first), seat->on_host);
}

bool goes_around(const RunArguments& arguments) {
  return arguments.ranks > 1 || !arguments.picture.empty();
}

// The answer of the ring, if the options request a ring.
std::optional<RingAnswer> go_around(const RunArguments& arguments, const std::optional<Seat>& seat,
                                    const Device& device, const ProblemInput& input) {
  if (!goes_around(arguments)) return std::nullopt;
  if (seat) {
    std::optional<Waiting> waiting;
    if (seat->rank == 0) waiting.emplace(fmt::format("running as rank 0 of {}", seat->ranks));
    return compute_rank(*seat, device, arguments, input);
  }
  if (arguments.processes && arguments.ranks > 1) {
    return compute_ring_of_processes(device, arguments, input);
  }
  return compute_ring(ring_devices(device, arguments.device, arguments.ranks), arguments, input);
}

// Plans the problem for one device, and runs nothing.
RunResult prepare(const RunArguments& arguments, const PlanOptions& options, const Device& device,
                  ProblemInput input) {
  const Plan plan = [&] {
    const Waiting waiting("planning and compiling");
    PlanOptions asked = options;
    asked.wait = !arguments.no_wait;
    return device.plan(input.problem, asked);
  }();
  const std::optional<double> density = density_of(input.problem, arguments.problem);
  return {.input = std::move(input),
          .device = device,
          .plan = plan,
          .density = density,
          .around = arguments.ranks > 1};
}

// Runs on one device as well, if that gives the answer or a comparison for the answer of the ring.
// Returns the answer that is reported.
Answer answer_of(const RunArguments& arguments, std::optional<RingAnswer> ring, RunResult* result) {
  Answer answer;
  if (!result->around || !arguments.no_check) {
    result->device.counters(true);
    answer =
        compute(result->device, result->plan, result->input, result->around ? 1 : arguments.repeat);
    result->counters = result->device.counters();
  }
  if (ring) {
    if (!arguments.no_check) {
      const Dtype dtype = result->input.problem.output_dtype();
      result->difference = largest_difference(answer.o, ring->answer.o, dtype);
    }
    answer = std::move(ring->answer);
    result->counters = std::move(ring->counters);
    result->ring = std::move(ring);
  }
  result->millis = answer.millis;
  return answer;
}

// Waits for the problem's own kernel after the first answer, and computes the answer with it again.
Answer answer_again(const RunArguments& arguments, Clock::time_point asked, const Answer& first,
                    RunResult* result) {
  const auto millis = [&] {
    return std::chrono::duration<double, std::milli>(Clock::now() - asked).count();
  };
  LateAnswer late;
  late.general_config = result->plan.info().config;
  late.answered_millis = millis();
  {
    const Waiting waiting("waiting for the problem's own kernel");
    result->plan.wait();
  }
  late.swapped_millis = millis();
  late.why_general = result->plan.why_general();
  Answer answer = compute(result->device, result->plan, result->input, arguments.repeat);
  late.difference = largest_difference(first.o, answer.o, result->input.problem.output_dtype());
  result->millis = answer.millis;
  result->late = std::move(late);
  return answer;
}

void save_picture(const RunResult& result, const std::string& path) {
  base::FileSystem files;
  base::write_file_atomically(files, path, std::as_bytes(std::span(result.ring->picture)));
}

// The seconds since `start`. Sets `start` to now.
double seconds_since(Clock::time_point* start) {
  const Clock::time_point before = std::exchange(*start, Clock::now());
  return std::chrono::duration<double>(*start - before).count();
}

Exit run(const RunArguments& given) {
  const Interruption interruption(Interruption::Kind::kEnds);
  check_ring_options(given);
  const std::optional<Seat> seat = seat_of(given);
  RunArguments arguments = given;
  if (seat) arguments.ranks = seat->ranks;
  const bool reports = !seat || seat->rank == 0;
  if (reports) check_can_write(arguments);
  if (arguments.batch.requests) return run_batch(arguments);
  ProblemInput input = make_input(arguments.problem, true, [&](const Problem& problem) {
    if (!goes_around(arguments)) return;
    validate(ring_shards(arguments.shard, problem, arguments.ranks), problem);
  });
  const PlanOptions options = plan_options(arguments.problem, input);
  Clock::time_point start = Clock::now();
  const Device device = device_of(arguments, seat);
  std::optional<RingAnswer> ring = go_around(arguments, seat, device, input);
  if (!reports && !ring) return Exit::kOk;  // rank 0 has the answer
  const double ring_seconds = seconds_since(&start);
  const Clock::time_point asked = Clock::now();
  RunResult result = prepare(arguments, options, device, std::move(input));
  result.plan_seconds = seconds_since(&start);
  Answer answer = answer_of(arguments, std::move(ring), &result);
  Checked first;
  if (arguments.no_wait && result.plan.info().general) {
    if (!arguments.no_check) first = check(result.input, result.plan.info(), answer, false);
    answer = answer_again(arguments, asked, answer, &result);
  }
  result.run_seconds = ring_seconds + seconds_since(&start);
  if (!arguments.picture.empty()) save_picture(result, arguments.picture);
  if (!arguments.no_check) {
    result.checked = check(result.input, result.plan.info(), answer, result.around);
    if (first.wrong()) result.checked = std::move(first);
    result.check_seconds = seconds_since(&start);
  }
  if (!arguments.output.empty()) {
    save_output(arguments.output, answer.o, result.input.problem.output_dtype(), answer.lse);
  }
  if (arguments.json) {
    print_json(run_json(result, arguments));
  } else {
    print_run(result, arguments);
  }
  return exit_of(result.checked);
}

// Accepts a number of ranks, or "env".
CLI::Validator ranks_or_env() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    if (text == "env") {
      text = std::to_string(kLaunchedRanks);
      return {};
    }
    int ranks = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && ranks >= 1 && ranks <= kMaxRanks) return {};
    return fmt::format("'{}' is neither a number from 1 to {} nor env", text, kMaxRanks);
  });
  return validator;
}

void add_options(CLI::App& app, RunArguments* arguments) {
  add_device(app, &arguments->device);
  add_problem(app, &arguments->problem);
  add_batch(app, &arguments->batch);
  CLI::Option* ranks =
      app.add_option(
             "--ranks", arguments->ranks,
             with_default(
                 "run around a ring of this many ranks, on the GPUs or simulated devices of "
                 "one kind, in turn; env: this process is one rank, as torchrun, mpirun or "
                 "srun has started it, and rank 0 prints",
                 arguments->ranks))
          ->type_name("RANKS")
          ->transform(ranks_or_env());
  add_shard(app, &arguments->shard)->needs(ranks);
  app.add_option("--route", arguments->route,
                 with_default("how rows of K and V travel: direct, ring (hop by hop), or auto",
                              arguments->route))
      ->check(CLI::IsMember({"auto", "direct", "ring"}))
      ->needs(ranks);
  app.add_flag("--processes", arguments->processes,
               "start a process for each rank, which exchange rows over NCCL, each on a device of "
               "its own")
      ->needs(ranks);
  app.add_option("--rendezvous", arguments->rendezvous,
                 "with --ranks env: where ranks meet, tcp:HOST:PORT of rank 0, or on one host "
                 "file:PATH; default: the address that torchrun or srun sets")
      ->type_name("PLACE")
      ->needs(ranks);
  app.add_option("--deadline", arguments->deadline,
                 "with --processes or --ranks env: the most milliseconds that ranks wait for each "
                 "other; 0: no limit; default: 30000")
      ->check(number_of_type<int>())
      ->check(CLI::Range(0, 1000000000))
      ->needs(ranks);
  app.add_flag("--go-on", arguments->go_on,
               "with --processes or --ranks env: if a rank is late or has died, the ranks that are "
               "left begin again without it, if they are more than half, or half with rank 0")
      ->needs(ranks);
  app.add_option("--seat", arguments->seat)->group("");  // set for processes that rank 0 starts
  app.add_option("--picture", arguments->picture, "draw the ring's schedule to this SVG file")
      ->type_name(kFile)
      ->needs(ranks);
  app.add_option("--output,-o", arguments->output, "write O and LSE to this safetensors file")
      ->type_name(kFile);
  app.add_flag("--no-check", arguments->no_check, "do not compare with the float64 oracle");
  app.add_flag("--no-wait", arguments->no_wait,
               "answer with a general kernel while the problem's own is compiled, then with that");
  add_number(app, "--repeat", &arguments->repeat, "times to run; the median is shown")
      ->check(CLI::Range(1, 1000000));
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_run = {"run",
                       "one attention problem, checked by the oracle",
                       {"annulus run -H 2 -S 512 -D 64 -p 'causal & window(127, 0)'",
                        "annulus run -H 2 -S 256 -D 64 -p causal --ranks 4 --shard zigzag --json"},
                       add_verb<RunArguments, add_options, run>};

}  // namespace annulus::program
