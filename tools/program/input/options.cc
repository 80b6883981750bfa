#include "program/input/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>

#include "annulus/ring.h"
#include "base/fail.h"
#include "base/files.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/text_error.h"
#include "program/input/problem_input.h"
#include "program/input/shapes.h"

namespace annulus::program {
namespace {

void add_device(CLI::App& app, DeviceArguments* to, const std::string& others = "") {
  app.add_option("--device", to->name,
                 "cuda:N, sim:sm_80 or sim:sm_90a, with :N for one of several" + others +
                     "; default: ANNULUS_DEVICE, else the first GPU, else a simulated one")
      ->type_name("DEVICE");
  app.add_option("--mode,--twin", to->mode,
                 with_default("how a simulated device runs: checked or fast", to->mode))
      ->check(CLI::IsMember({"checked", "fast"}));
  add_number(app, "--sim-seed", &to->sim_seed,
             "simulated device: seed of warp order and of when copies land");
  add_number(app, "--sim-threads", &to->sim_threads, "simulated device: host threads; 0: all")
      ->check(CLI::Range(0, 1024));
  app.add_option("--templates", to->templates, "folder of kernel templates to use instead")
      ->type_name(kFolder);
  app.add_option("--cache-dir", to->cache_dir,
                 "folder of compiled kernels; 'none' keeps nothing on disk")
      ->type_name(kFolder);
  app.add_option("--kernels", to->kernels,
                 "folders of kernels compiled ahead, ':' between them; 'none' looks nowhere")
      ->type_name(kPaths);
  app.add_option("--tuned", to->tuned,
                 "folders and packs of tuned results, ':' between them; 'none' looks nowhere")
      ->type_name(kPaths);
  app.add_flag("--verbose,-v", to->verbose, "notes of the library on stderr");
  app.add_option("--trace", to->trace,
                 "write what was done and when to this .json file, for ui.perfetto.dev")
      ->type_name(kFile);
  app.add_option("--shape-log", to->shape_log,
                 "count what is planned in this file, which tune and warm take as --shapes")
      ->type_name(kFile);
}

void add_shape(CLI::App& app, ProblemArguments* to) {
  add_number(app, "--batch,-B", &to->batch, "batch size");
  add_number(app, "--heads,-H", &to->heads, "query heads");
  add_number(app, "--kv-heads", &to->kv_heads, "key/value heads; default: as many as --heads");
  add_number(app, "--seq,-S", &to->seq, "queries; and keys, unless --seq-k is given");
  app.add_option("--seq-k", to->seq_k, "keys; default: as --seq")
      ->check(number_of_type<std::int64_t>());
  app.add_option("--q0", to->q0, "position of the first query; default: keys less queries")
      ->check(number_of_type<std::int64_t>());
  app.add_option("--k0", to->k0, "position of the first key; default: 0")
      ->check(number_of_type<std::int64_t>());
  app.add_option("--dim,-D", to->dim, with_default("head dim, or QK/V as in 192/128", to->dim))
      ->type_name("DIM");
  app.add_option("--dtype", to->dtype,
                 "bf16, fp16 or e4m3 (sm_90a; O is bf16); default: the file's, else bf16")
      ->check(CLI::IsMember({"bf16", "fp16", "e4m3"}));
  app.add_option("--scale-block", to->scale_block,
                 "e4m3: rows of Q, of K and of V that share a scale, a power of two from 32; 0: "
                 "all of a head; default: 64")
      ->check(number_of_type<std::int64_t>());
  app.add_option(
         "--pattern,-p", to->pattern,
         with_default(
             "which keys a query sees, as in \"causal & (window(511,0) | global(16))\"; @file "
             "reads it from a file",
             to->pattern))
      ->type_name("PATTERN");
  app.add_option("--scale", to->scale, "of the scores; default: 1 / sqrt(head dim)")
      ->type_name("NUMBER")
      ->check(number_of_type<double>());
  add_number(app, "--softcap", &to->softcap, "c of c tanh(score / c); 0: none");
  app.add_option("--score", to->score,
                 "scores as text, as in \"softcap(30), alibi([0.5, 0.25]), sink_logit(1)\"; @file "
                 "reads them from a file")
      ->type_name("SCORE");
  add_number(app, "--layer", &to->layer,
             "of the model: random patterns differ from layer to layer");
}

void add_problem(CLI::App& app, ProblemArguments* to) {
  add_shape(app, to);
  app.add_option("--block", to->block,
                 "size of the blocks that block density counts; default: the kernel's")
      ->type_name(kBlockSize);
  app.add_option("--lse-base", to->lse_base,
                 with_default("base of the log-sum-exp: natural or two", to->lse_base))
      ->check(CLI::IsMember({"natural", "two"}));
  app.add_option("--layout", to->layout, "order of the tensors: bshd or bhsd; default: bshd")
      ->check(CLI::IsMember({"bshd", "bhsd"}));
  add_number(app, "--seed", &to->seed, "of random operands");
  // Sizes are the file's, and an option that says others must not be passed over in silence.
  CLI::Option* input =
      app.add_option("--input,-i", to->input, "safetensors file with q, k and v")->type_name(kFile);
  for (const char* name :
       {"--batch", "--heads", "--kv-heads", "--seq", "--seq-k", "--dim", "--seed"}) {
    input->excludes(app.get_option(name));
  }
  app.add_option("--config", to->config,
                 "kernel configuration to use, by name; of a batch one for each class of its "
                 "requests, as in \"decode m16 n64 w4 s2, chunk m64 n32 w4 s2\"")
      ->type_name("CONFIG");
  add_number(app, "--kv-batch", &to->kv_batch,
             "1: K and V have one batch, which every batch of Q reads; default: as --batch");
  add_number(app, "--kv-splits,--split-rows", &to->kv_splits,
             "parts of the longest tile rows, which CTAs compute side by side; 1: none; 0: as the "
             "model predicts to be fastest");
  add_max_work(app, &to->max_work);
}

// Options of a problem that a batch of requests does not have, and why.
struct RefusedOption {
  const char* name;
  const char* reason;
};
constexpr RefusedOption kNotOfBatches[] = {
    {"--batch", "each request is a batch of its own, as in \"1/4096 x 8\""},
    {"--seq", "each request has queries of its own, as in \"512/2048\""},
    {"--seq-k", "each request has keys of its own, as in \"512/2048\""},
    {"--q0", "the queries of a request are at the end of its keys; --k0 moves both"},
    {"--kv-batch", "requests have keys of their own"},
    {"--kv-splits", "a batch parts the keys of long requests; --part-keys says where"},
    {"--scale-block", "batches have no operands with scales"},
    {"--layer", "no kernel of batches has patterns that differ between layers"},
    {"--block", "the density of blocks is counted for problems alone"},
    {"--input", "requests have random operands"},
    {"--ranks", "a ring is of one problem"},
    {"--total-k", "the keys of a request are all that there are"},
    {"--dtype-o", "kernels of batches write O of the dtype of Q"},
    {"--max-blocks", "requests list their blocks: --block-keys and --most-blocks"},
};

// And options that a batch alone has.
constexpr const char* kOfBatches[] = {"--page", "--table", "--part-keys", "--kv-dtype"};

void check_batch_options(const CLI::App& app, BatchArguments* to) {
  const auto is_given = [&](const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  if (!to->given()) {
    const auto found = std::ranges::find_if(kOfBatches, is_given);
    if (found != std::end(kOfBatches)) throw CLI::RequiresError(*found, "--requests");
    return;
  }
  for (const RefusedOption& option : kNotOfBatches) {
    if (!is_given(option.name)) continue;
    to->refused = fmt::format("{} does not go with {}: {}", option.name,
                              to->requests ? "--requests" : "--most-requests", option.reason);
    return;
  }
}

void add_batch(CLI::App& app, BatchArguments* to) {
  CLI::Option* requests = app.add_option("--requests", to->requests,
                                         "a batch of requests in place of one problem: "
                                         "queries/keys of each, and how many, as in "
                                         "\"1/4096 x 8, 1/77, 512/2048\"")
                              ->type_name("REQUESTS");
  add_number(app, "--page", &to->page, "rows of a page of K and V; 0: no pages")->needs(requests);
  app.add_option(
         "--table", to->table,
         with_default("how pages are found: dense (a row of page numbers for each request) or csr "
                      "(begins and numbers); without pages: a slab for each request, or begins",
                      to->table))
      ->check(CLI::IsMember({"dense", "csr"}))
      ->needs(requests);
  add_number(app, "--part-keys", &to->part_keys,
             "keys of a part of a long request, a multiple of 128; 0: chosen from the bounds")
      ->needs(requests);
  app.add_option("--kv-dtype", to->kv_dtype, "of K and V: bf16, fp16 or e4m3; default: as --dtype")
      ->check(CLI::IsMember({"bf16", "fp16", "e4m3"}))
      ->needs(requests);
  app.parse_complete_callback([&app, to] { check_batch_options(app, to); });
}

// A batch by what a step of it may have, as an engine plans it, with what run() has no operands
// for. Requests beside bounds are the step that is measured.
void add_bounds(CLI::App& app, BatchArguments* to) {
  CLI::Option* requests = app.get_option("--requests");
  CLI::Option* bounds =
      add_number(app, "--most-requests", &to->most.requests,
                 "a batch of up to so many requests in place of one problem; --requests beside it "
                 "are a step that is measured")
          // A 0 would be no batch at all.
          ->check(CLI::Range(std::int64_t{1}, kMostRequests));
  add_number(app, "--most-queries", &to->most.rows,
             "of all requests together; default: as --most-requests")
      ->needs(bounds);
  add_number(app, "--most-queries-of-one", &to->most.rows_of_one,
             "of one request; default: as --most-queries")
      ->needs(bounds);
  add_number(app, "--most-keys-of-one", &to->most.keys_of_one, "of one request")->needs(bounds);
  add_number(app, "--most-keys", &to->most.keys,
             "of all requests together; default: as many as they may have each")
      ->needs(bounds);
  bounds->needs(app.get_option("--most-keys-of-one"));
  add_number(app, "--block-keys", &to->block_keys,
             "keys of the blocks that each request lists; 0: it lists none")
      ->needs(bounds);
  add_number(app, "--most-blocks", &to->most_blocks, "of such a list")
      ->needs(app.get_option("--block-keys"));
  app.add_flag("--row-limits", to->row_limits, "rows of Q have limits of their own")
      ->needs(bounds)
      ->disable_flag_override();
  app.add_option("--interleave", to->interleave,
                 "requests have the keys of one rank: the keys of a block, ranks and rank, as in "
                 "16/4/1")
      ->type_name("BLOCK/RANKS/RANK")
      ->needs(bounds);
  // What a batch of requests has, one of bounds has too; check_batch_options says who has it not.
  for (const char* name : kOfBatches) app.get_option(name)->remove_needs(requests);
}

// What describes a shape alone, without operands.
void add_shape_options(CLI::App& app, ProblemArguments* shape, std::string* carry) {
  add_shape(app, shape);
  app.add_option("--carry", *carry,
                 with_default("the state is carried: none, in, out or both", *carry))
      ->check(CLI::IsMember({"none", "in", "out", "both"}));
  app.add_option("--total-k", shape->total_k,
                 "keys of the whole sequence; default: --k0 and --seq-k")
      ->check(number_of_type<std::int64_t>());
  app.add_option("--dtype-o", shape->dtype_o, "e4m3: the dtype of O; default: bf16")
      ->check(CLI::IsMember({"bf16", "fp16"}));
}

// An empty word, as of a shell's variable that is not set, is not the same as no option at all.
CLI::Validator not_empty() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    return text.empty() ? "an empty word names nothing; give a name, or leave the option out" : "";
  });
  return validator;
}

// "10m", "90s", "1.5h", "30d", "300": seconds.
CLI::Validator duration() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const double seconds = unit == "d"   ? 86400
                           : unit == "h" ? 3600
                           : unit == "m" ? 60
                                         : unit == "s" || unit.empty();
    if (error != std::errc() || seconds == 0 || !(value > 0) || value > 1e9) {
      return fmt::format("'{}' is no time; write 90s, 10m or 1.5h", text);
    }
    text = fmt::format("{}", value * seconds);
    return {};
  });
  return validator;
}

// "500M", "2G", "1000000": bytes.
CLI::Validator bytes() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const std::int64_t each = unit == "G" ? 1'000'000'000 : unit == "M" ? 1'000'000 : unit.empty();
    if (error != std::errc() || each == 0 || value < 0 || value > 1'000'000'000'000 / each) {
      return fmt::format("'{}' is no number of bytes; write 500M, 2G or 1000000", text);
    }
    text = std::to_string(value * each);
    return {};
  });
  return validator;
}

std::int64_t whole_number(std::string_view text, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    base::fail(ErrorCode::kInvalidArgument, "'{}' in {} is no whole number", text, what);
  }
  return value;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> two_numbers(const std::string& text, char separator,
                                                  std::string_view what) {
  const std::size_t at = text.find(separator);
  if (at == std::string::npos) {
    const std::int64_t value = whole_number(text, what);
    return {value, value};
  }
  return {whole_number(std::string_view(text).substr(0, at), what),
          whole_number(std::string_view(text).substr(at + 1), what)};
}

void add_max_work(CLI::App& app, std::int64_t* to) {
  add_number(app, "--max-work", to,
             "steps that the work on the host may take, 200 million to a second; 0: no limit");
}

Exit exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kParse:
    case ErrorCode::kLimit:
      return Exit::kUsage;
    case ErrorCode::kCancelled:
      return Exit::kPartial;
    case ErrorCode::kInvalidFile:
    case ErrorCode::kFile:
      return Exit::kInvalidFile;
    case ErrorCode::kLibrary:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kDevice:
    case ErrorCode::kFault:
    case ErrorCode::kCommunication:
      return Exit::kDevice;
    case ErrorCode::kCompile:
    case ErrorCode::kInternal:
      break;
  }
  return Exit::kInternal;
}

namespace {

// A number of ranks, or "env".
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

CLI::Option* add_shard(CLI::App& app, std::string* to) {
  return app
      .add_option("--shard", *to, with_default("what each rank holds: contiguous or zigzag", *to))
      ->check(CLI::IsMember({"contiguous", "zigzag"}));
}

}  // namespace

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
                 "file:PATH; default: as torchrun and srun say")
      ->type_name("PLACE")
      ->needs(ranks);
  app.add_option("--deadline", arguments->deadline,
                 "with --processes or --ranks env: milliseconds that ranks wait for each other, "
                 "whatever for; 0: any time; default: 30000")
      ->check(number_of_type<int>())
      ->check(CLI::Range(0, 1000000000))
      ->needs(ranks);
  app.add_flag("--go-on", arguments->go_on,
               "with --processes or --ranks env: if a rank is late or has died, those that are "
               "left begin again without it, if they are more than half, or half with rank 0")
      ->needs(ranks);
  app.add_option("--seat", arguments->seat)->group("");  // for the processes that are started
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
  app.add_flag("--json", arguments->json, "print one JSON object");
}

void add_options(CLI::App& app, ExplainArguments* arguments) {
  add_device(app, &arguments->device,
             "; or a GPU that need not be here, by name (a100, l4, rtx4090, h100, ...) or by "
             "architecture (sm_89)");
  add_problem(app, &arguments->problem);
  add_batch(app, &arguments->batch);
  CLI::Option* source =
      app.add_flag("--source", arguments->source, "print the specialised source alone");
  CLI::Option* brief =
      app.add_flag("--brief", arguments->brief, "print the choice and the prediction, no reasons")
          ->excludes(source);
  app.add_flag("--json", arguments->json, "print one JSON object")->excludes(source, brief);
}

void add_options(CLI::App& app, DoctorArguments* arguments) {
  add_device(app, &arguments->device);
  app.add_flag("--json", arguments->json, "print one JSON object");
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
  CLI::Option* replay =
      app.add_option("--replay", arguments->replay,
                     "a journal: decide again from what it says, without a device")
          ->type_name(kFile)
          ->check(not_empty());
  replay->excludes(shapes)->excludes(model);
  // Each line says all of its shape, and so does a journal.
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
  app.add_flag("--force", arguments->force, "tune again what is tuned already");
  app.add_flag("--dry-run", arguments->dry_run, "say what would be tried; run and write nothing");
  app.add_flag("--cold-cache", arguments->cold_cache, "empty L2 before each measured launch");
  add_number(app, "--seed", &arguments->shape.seed, "of random operands");
  app.add_flag("--models", arguments->models, "list the models that --model knows; tune nothing");
  app.add_flag(
      "--keep-journal", arguments->keep_journal,
      "leave the journal of a search that ended beside its result, from which annulus tune "
      "report draws");
  app.add_flag("--json", arguments->json, "print one JSON object");
}

void add_options(CLI::App& app, WarmArguments* arguments) {
  app.add_option("--shapes", arguments->shapes,
                 "a file with one shape on each line, as options of run, --requests of a batch "
                 "included; or a preset: small, common")
      ->type_name(kFile)
      ->check(not_empty());
  app.add_option(
         "--model", arguments->model,
         "the shapes of a model by its name, as llama-3-8b; annulus tune --models lists them")
      ->type_name("NAME")
      ->check(not_empty());
  app.add_flag("--general", arguments->general,
               "all general kernels, which plans that do not wait begin with");
  app.add_option("--from", arguments->from,
                 "what a folder of compiled kernels holds for the architecture, as one in which a "
                 "simulated device has kept its own; may be given several times")
      ->type_name("FOLDER");
  app.add_option("--into", arguments->into,
                 "folder for the kernels, which is made; what is there already is left")
      ->type_name(kFolder)
      ->required();
  app.add_option("--device", arguments->devices,
                 "what to compile for, several times for several: a GPU by name (a100, l4, "
                 "rtx4090, h100, ...) "
                 "or by architecture (sm_89), which need not be here; sim:sm_80, sim:sm_90a; "
                 "cuda:N; default: ANNULUS_DEVICE, "
                 "else the first GPU, else a simulated one")
      ->type_name("DEVICE")
      ->allow_extra_args(false);
  app.add_option(
         "--arch", arguments->architectures,
         "all GPUs of an architecture that are known by name: sm_80, sm_89, sm_90a, sm_90, ...")
      ->type_name("ARCH")
      ->allow_extra_args(false);
  app.add_option("--templates", arguments->templates, "folder of kernel templates to use instead")
      ->type_name(kFolder);
  app.add_option("--tuned", arguments->tuned,
                 "folders of tuned results, ':' between them; 'none' looks nowhere")
      ->type_name(kPaths);
  add_number(app, "--threads", &arguments->threads,
             "kernels to compile at a time; 0: one for each "
             "processor")
      ->check(CLI::Range(0, 1024));
  add_max_work(app, &arguments->max_work);
  app.add_flag("--verbose,-v", arguments->verbose, "notes of the library on stderr");
  app.add_flag("--json", arguments->json, "print one JSON object");
}

namespace {

void add_cache(CLI::App& app, CacheArguments* arguments) {
  app.add_option("--cache-dir", arguments->cache_dir,
                 "folder of compiled kernels; default: ANNULUS_CACHE_DIR, else the user's cache "
                 "folder")
      ->type_name(kFolder);
  app.add_flag("--json", arguments->json, "print one JSON object");
}

}  // namespace

void add_list_options(CLI::App& app, CacheArguments* arguments) { add_cache(app, arguments); }

void add_prune_options(CLI::App& app, CacheArguments* arguments) {
  add_cache(app, arguments);
  app.add_option("--older-than", arguments->older_than_seconds,
                 "remove kernels older than this, as 12h or 30d")
      ->type_name("TIME")
      ->transform(duration());
  app.add_option("--max-bytes", arguments->max_bytes,
                 "remove the oldest until no more than this are left, as 500M or 2G")
      ->type_name("BYTES")
      ->transform(bytes());
  app.add_flag("--useless", arguments->useless,
               "remove those that serve no device here, real or simulated, with the NVRTC that is "
               "found");
  app.add_flag("--dry-run", arguments->dry_run, "say what would be removed; remove nothing");
}

void add_verify_options(CLI::App& app, CacheArguments* arguments) {
  add_cache(app, arguments);
  app.add_flag("--remove", arguments->remove, "remove files that are damaged");
}

void add_options(CLI::App& app, TuneReportArguments* arguments) {
  for (CLI::Option* option : app.get_parent()->get_options()) {
    if (option != app.get_parent()->get_help_ptr()) app.excludes(option);
  }
  CLI::Option* paths =
      app.add_option("paths", arguments->paths,
                     "journals, results, packs and folders of them; default: the search path")
          ->type_name(kFile);
  app.add_option("--output,-o", arguments->output, "the page of HTML to write")
      ->type_name(kFile)
      ->required();
  app.add_option("--tuned", arguments->tuned,
                 "folders and packs, ':' between them; default: ANNULUS_TUNED, else the user's "
                 "cache folder")
      ->type_name(kPaths)
      ->excludes(paths);
  app.add_flag("--json", arguments->json, "print one JSON object");
}

void add_list_options(CLI::App& app, TunedArguments* arguments) {
  app.add_option("--tuned", arguments->path,
                 "folders and packs, ':' between them; default: ANNULUS_TUNED, else the user's "
                 "cache folder")
      ->type_name(kPaths);
  app.add_flag("--json", arguments->json, "print one JSON object");
}

void add_show_options(CLI::App& app, TunedArguments* arguments) {
  add_list_options(app, arguments);
  app.add_option("name", arguments->name, "part of an entry's name or path; default: all entries");
}

namespace {

void add_path(CLI::App& app, PackArguments* arguments) {
  app.add_option("--tuned", arguments->device.tuned,
                 "folders and packs, ':' between them; default: ANNULUS_TUNED, else the user's "
                 "cache folder")
      ->type_name(kPaths);
}

void add_json(CLI::App& app, PackArguments* arguments) {
  app.add_flag("--json", arguments->json, "print one JSON object");
}

void add_filter(CLI::App& app, PackArguments* arguments) {
  app.add_option("--name", arguments->name, "those alone that have this in their name or path");
  app.add_option("--of", arguments->of, "those alone whose device has this in its name");
  app.add_flag("--measured", arguments->measured, "no predictions");
  app.add_flag("--complete", arguments->complete, "none of a search that was cut short");
}

void add_dry_run(CLI::App& app, PackArguments* arguments) {
  app.add_flag("--dry-run", arguments->dry_run, "say what would be removed; remove nothing");
}

}  // namespace

void add_export_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("pack", arguments->output, "the pack to write")->type_name(kFile)->required();
  add_path(app, arguments);
  add_filter(app, arguments);
  add_json(app, arguments);
}

void add_import_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "the packs to bring in")->type_name(kFile)->required();
  add_path(app, arguments);
  add_filter(app, arguments);
  add_json(app, arguments);
}

void add_merge_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "the packs to merge")->type_name(kFile)->required();
  app.add_option("--output,-o", arguments->output, "the pack to write")
      ->type_name(kFile)
      ->required();
  add_json(app, arguments);
}

void add_diff_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "two packs, or search paths")
      ->type_name(kFile)
      ->required()
      ->expected(2);
  add_json(app, arguments);
}

void add_verify_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "packs; default: what the search path holds")
      ->type_name(kFile);
  add_device(app, &arguments->device);
  add_number(app, "--measure", &arguments->measure,
             "so many entries are measured again beside the heuristic's choice; default: none")
      ->check(CLI::Range(0, 1000000));
  add_number(app, "--seed", &arguments->shape.seed,
             "of random operands and of which entries are measured");
  add_json(app, arguments);
}

void add_prune_options(CLI::App& app, PackArguments* arguments) {
  add_device(app, &arguments->device);
  app.add_flag("--others", arguments->others,
               "also what is of other devices than the one that is opened");
  add_dry_run(app, arguments);
  add_json(app, arguments);
}

void add_remove_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("name", arguments->name, "part of one entry's name or path")->required();
  add_path(app, arguments);
  add_dry_run(app, arguments);
  add_json(app, arguments);
}

void add_why_options(CLI::App& app, PackArguments* arguments) {
  add_device(app, &arguments->device);
  add_shape_options(app, &arguments->shape, &arguments->carry);
  add_batch(app, &arguments->batch);
  add_bounds(app, &arguments->batch);
  CLI::Option* blocks =
      add_number(app, "--max-blocks", &arguments->max_blocks,
                 "the plan has a selection: so many blocks of a row, which each run chooses; 0: it "
                 "has none");
  app.add_option("--selected-blocks", arguments->selected_blocks,
                 with_default("the size of these blocks", arguments->selected_blocks))
      ->type_name(kBlockSize)
      ->needs(blocks);
  add_json(app, arguments);
}

std::optional<std::string> tuned_path_of(const std::string& option) {
  if (option.empty()) return std::nullopt;
  return option == "none" ? std::string() : absolute_paths(option);
}

DeviceOptions device_options(const DeviceArguments& arguments) {
  DeviceOptions options;
  options.name = arguments.name;
  options.template_dir = arguments.templates;
  if (arguments.cache_dir == "none") {
    options.cache_dir = "";
  } else if (!arguments.cache_dir.empty()) {
    options.cache_dir = absolute_paths(arguments.cache_dir);
  }
  if (arguments.kernels == "none") {
    options.kernels_path = "";
  } else if (!arguments.kernels.empty()) {
    options.kernels_path = absolute_paths(arguments.kernels);
  }
  options.tuned_path = tuned_path_of(arguments.tuned);
  options.simulation.checked = arguments.mode != "fast";
  options.simulation.seed = arguments.sim_seed;
  options.simulation.threads = arguments.sim_threads;
  options.log = [](LogLevel, std::string_view text) { print_log(text); };
  if (arguments.verbose) options.log_level = LogLevel::kDebug;
  if (!arguments.trace.empty()) options.time_every_nth_run = 1;
  if (!arguments.shape_log.empty()) {
    options.shape_log = std::filesystem::absolute(arguments.shape_log).string();
  }
  return options;
}

PlanOptions plan_options(const ProblemArguments& arguments) {
  PlanOptions options;
  options.config = arguments.config;
  options.kv_splits = arguments.kv_splits;
  options.work.steps = arguments.max_work;
  if (!arguments.block.empty()) {
    const auto [rows, columns] = two_numbers(arguments.block, 'x', "--block (RxC)");
    if (rows < 1 || columns < 1) {
      base::fail(ErrorCode::kInvalidArgument, "--block is {}; give positive sizes as in 128x128",
                 arguments.block);
    }
    options.block_rows = rows;
    options.block_columns = columns;
  }
  return options;
}

std::string text_or_file(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  base::FileSystem files;
  const std::vector<std::byte> bytes = base::read_file(files, text.substr(1), kMaxBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Pattern parse_pattern(const std::string& option) {
  const std::string text = text_or_file(option);
  Pattern pattern;
  parse_shown(text, [&] { pattern = Pattern::parse(text); });
  return pattern;
}

namespace {

// The options of a line of a file of shapes.
struct ShapeLine {
  ProblemArguments shape;
  BatchArguments batch;
  std::string carry = "none";
  std::int64_t count = 0;
};

ShapeLine parse_line(const std::string& line) {
  CLI::App app;
  app.set_help_flag();
  ShapeLine read;
  add_shape_options(app, &read.shape, &read.carry);
  app.add_option("--config", read.shape.config);
  // A search does not ask for these, and a plan would refuse numbers below 0.
  const auto add_from_0 = [&]<typename T>(const char* name, T* to) {
    add_number(app, name, to, "")->check(CLI::Range(T{0}, std::numeric_limits<T>::max()));
  };
  add_from_0("--kv-splits", &read.shape.kv_splits);
  add_from_0("--max-multiprocessors", &read.shape.max_multiprocessors);
  add_from_0("--count", &read.count);
  add_batch(app, &read.batch);
  add_bounds(app, &read.batch);
  std::vector<std::string> words = words_of(line);
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    base::fail(ErrorCode::kInvalidFile, "{}", error.what());
  }
  return read;
}

}  // namespace

ShapeToTune parse_shape(const std::string& line) {
  const ShapeLine read = parse_line(line);
  ShapeToTune shape;
  shape.count = read.count;
  if (read.batch.given()) {
    shape.what = make_batch(read.shape, read.batch, read.carry);
  } else {
    shape.what = make_shape(read.shape, read.carry);
  }
  if (!read.shape.config.empty()) {
    shape.left_out = "plans of a configuration that was asked for";
  }
  return shape;
}

void parse_warm_shape(const std::string& line, std::int64_t max_work, WarmWork* work) {
  ShapeLine read = parse_line(line);
  if (read.batch.given()) {
    BatchInput input = make_batch(read.shape, read.batch, read.carry);
    work->batches.push_back({std::move(input.problem), input.options});
    return;
  }
  read.shape.max_work = max_work;
  PlanOptions options = plan_options(read.shape);
  options.max_multiprocessors = read.shape.max_multiprocessors;
  work->shapes.push_back({make_shape(read.shape, read.carry), options, {}});
}

}  // namespace annulus::program
