#include "program/input/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/input/batch_input.h"

namespace annulus::program {
namespace {

void add_shape(CLI::App& app, ProblemArguments* to) {
  add_number(app, "--batch,-B", &to->batch, "batch size");
  add_number(app, "--heads,-H", &to->heads, "query heads");
  add_number(app, "--kv-heads", &to->kv_heads, "key/value heads; default: the number of --heads");
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

// The options of a problem that a batch of requests does not accept, with the reasons.
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
    {"--kv-splits",
     "a batch divides the keys of long requests; --part-keys sets the size of a part"},
    {"--scale-block", "batches have no operands with scales"},
    {"--layer", "no kernel of batches has patterns that differ between layers"},
    {"--block", "the density of blocks is counted for problems alone"},
    {"--input", "requests have random operands"},
    {"--ranks", "a ring is of one problem"},
    {"--total-k", "the keys of a request are all that there are"},
    {"--dtype-o", "kernels of batches write O of the dtype of Q"},
    {"--max-blocks", "requests list their blocks: --block-keys and --most-blocks"},
};

// The options that only a batch accepts.
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

}  // namespace

void add_device(CLI::App& app, DeviceArguments* to, const std::string& others) {
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
                 "folders of kernels compiled ahead, ':' between them; 'none': no folder")
      ->type_name(kPaths);
  app.add_option("--tuned", to->tuned,
                 "folders and packs of tuned results, ':' between them; 'none': no folder")
      ->type_name(kPaths);
  app.add_flag("--verbose,-v", to->verbose, "notes of the library on stderr");
  app.add_option("--trace", to->trace,
                 "write a trace of the work and its times to this .json file, for ui.perfetto.dev")
      ->type_name(kFile);
  app.add_option("--shape-log", to->shape_log,
                 "count the planned shapes in this file, which tune and warm take as --shapes")
      ->type_name(kFile);
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
  // The file determines the sizes, so an option with another size is an error.
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
             "parts of the longest tile rows, which CTAs compute in parallel; 1: none; 0: as the "
             "model predicts to be fastest");
  add_max_work(app, &to->max_work);
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

void add_bounds(CLI::App& app, BatchArguments* to) {
  CLI::Option* requests = app.get_option("--requests");
  CLI::Option* bounds = add_number(app, "--most-requests", &to->most.requests,
                                   "a batch of up to this many requests in place of one problem; "
                                   "--requests with it are a step that is measured")
                            ->check(CLI::Range(std::int64_t{1}, kMaxRequests));
  add_number(app, "--most-queries", &to->most.rows,
             "of all requests together; default: as --most-requests")
      ->needs(bounds);
  add_number(app, "--most-queries-of-one", &to->most.rows_of_one,
             "of one request; default: as --most-queries")
      ->needs(bounds);
  add_number(app, "--most-keys-of-one", &to->most.keys_of_one, "of one request")->needs(bounds);
  add_number(app, "--most-keys", &to->most.keys,
             "of all requests together; default: --most-keys-of-one for each")
      ->needs(bounds);
  bounds->needs(app.get_option("--most-keys-of-one"));
  add_number(app, "--block-keys", &to->block_keys,
             "keys of the blocks that each request lists; 0: it lists none")
      ->needs(bounds);
  add_number(app, "--most-blocks", &to->max_blocks, "of such a list")
      ->needs(app.get_option("--block-keys"));
  app.add_flag("--row-limits", to->row_limits, "rows of Q have limits of their own")
      ->needs(bounds)
      ->disable_flag_override();
  app.add_option("--interleave", to->interleave,
                 "requests have the keys of one rank: the keys of a block, ranks and rank, as in "
                 "16/4/1")
      ->type_name("BLOCK/RANKS/RANK")
      ->needs(bounds);
  // These options also go with bounds, so their dependence on --requests is removed.
  // check_batch_options() reports one that is given with neither.
  for (const char* name : kOfBatches) app.get_option(name)->remove_needs(requests);
}

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

CLI::Validator not_empty() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    return text.empty() ? "an empty word is not a name; give a name, or leave the option out" : "";
  });
  return validator;
}

CLI::Option* add_shard(CLI::App& app, std::string* to) {
  return app
      .add_option("--shard", *to,
                  with_default("the rows that each rank holds: contiguous or zigzag", *to))
      ->check(CLI::IsMember({"contiguous", "zigzag"}));
}

void add_max_work(CLI::App& app, std::int64_t* to) {
  add_number(app, "--max-work", to,
             "steps that the work on the host may take, 200 million to a second; 0: no limit");
}

CLI::Option* add_json(CLI::App& app, bool* to) {
  return app.add_flag("--json", *to, "print one JSON object");
}

CLI::Option* add_tuned_path(CLI::App& app, std::string* to) {
  return app
      .add_option("--tuned", *to,
                  "folders and packs, ':' between them; default: ANNULUS_TUNED, else the user's "
                  "cache folder")
      ->type_name(kPaths);
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

}  // namespace annulus::program
