#ifndef ANNULUS_PROGRAM_INPUT_OPTIONS_H_
#define ANNULUS_PROGRAM_INPUT_OPTIONS_H_

// The options that several verbs have, as plain data, and how they get into the command line. What
// an option means is in its help text (options.cc).

#include <cstdint>
#include <optional>
#include <string>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/types.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace annulus::program {

struct DeviceArguments {
  std::string name;
  std::string mode = "checked";
  std::uint64_t sim_seed = 0;
  std::uint32_t sim_threads = 0;
  std::string templates;
  std::string cache_dir;  // as ANNULUS_CACHE_DIR; "none" keeps nothing on disk
  std::string tuned;      // as ANNULUS_TUNED; "none" looks nowhere
  std::string kernels;    // as ANNULUS_KERNELS; "none" looks nowhere
  bool verbose = false;
  std::string trace;      // file for what the process did; empty: none
  std::string shape_log;  // file for what was planned; empty: none
};

struct ProblemArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t kv_batch = 0;  // of K and V: 1, which every batch reads; 0: as many as batch
  std::int64_t seq = 1024;    // of queries, and of keys unless seq_k is given
  std::optional<std::int64_t> seq_k;
  std::optional<std::int64_t> q0;  // positions of the first query and key, as Problem's
  std::optional<std::int64_t> k0;
  std::string dim = "128";                  // "128", or "192/128"
  std::string dtype;                        // empty: bf16, or what the file holds
  std::optional<std::int64_t> scale_block;  // rows of a scale, with e4m3 alone; not given: 64
  std::string pattern = "dense";            // or "@file"
  std::string block;                        // "128x128": where block density is counted
  std::string scale;                        // empty: 1 / sqrt(Dqk)
  double softcap = 0;
  std::string score;  // text of a Score, or "@file"
  std::int64_t layer = 0;
  std::optional<std::int64_t> total_k;  // keys of the whole sequence, as Problem's; of shapes alone
  std::string dtype_o;                  // of O with e4m3: bf16 or fp16; of shapes alone
  int max_multiprocessors = 0;          // as PlanOptions; of shapes to compile ahead alone
  std::string lse_base = "natural";
  std::string input;   // safetensors
  std::string layout;  // empty: bshd
  std::uint64_t seed = 0;
  std::string config;
  int kv_splits = 0;                          // as PlanOptions
  std::int64_t max_work = kDefaultWorkSteps;  // as WorkLimit::steps
};

// A batch of requests in place of one problem: there is one where either of the first two is given.
struct BatchArguments {
  std::optional<std::string> requests;  // "1/4096 x 8, 512/2048"
  BatchBounds most;                     // of shapes alone; no requests: those of `requests`
  std::int64_t block_keys = 0;          // of shapes alone, as BatchProblem's, as are the next three
  std::int64_t most_blocks = 0;
  bool row_limits = false;
  std::string interleave;       // "16/4/1": a block, ranks, rank; empty: all keys
  std::int64_t page = 16;       // rows of a page; 0: no pages
  std::string table = "dense";  // or csr
  std::int64_t part_keys = 0;   // as BatchOptions
  std::string kv_dtype;         // empty: that of Q
  // Of an option that was given and that batches do not have: its name and why. Empty: none was.
  std::string refused;

  bool given() const { return requests || most.requests != 0; }
};

// `others` is added to the help of --device: further devices that the verb takes.
void add_device(CLI::App& app, DeviceArguments* to, const std::string& others = "");
// A problem with its operands.
void add_problem(CLI::App& app, ProblemArguments* to);
// A shape alone, without operands.
void add_shape_options(CLI::App& app, ProblemArguments* shape, std::string* carry);
// A batch in place of a problem. Requires: the options of a problem or a shape are added.
void add_batch(CLI::App& app, BatchArguments* to);
// The bounds of a batch, as an engine plans it. Requests beside bounds are the step that is
// measured. Requires: add_batch() was called.
void add_bounds(CLI::App& app, BatchArguments* to);
CLI::Option* add_shard(CLI::App& app, std::string* to);
void add_max_work(CLI::App& app, std::int64_t* to);
CLI::Option* add_json(CLI::App& app, bool* to);
// --tuned of a verb that opens no device.
CLI::Option* add_tuned_path(CLI::App& app, std::string* to);

// An empty word, as of a shell's variable that is not set, is not the same as no option at all.
CLI::Validator not_empty();

// The search path that an option says: absolute, "" for "none", nothing where it is not given.
std::optional<std::string> tuned_path_of(const std::string& option);

DeviceOptions device_options(const DeviceArguments& arguments);
PlanOptions plan_options(const ProblemArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_OPTIONS_H_
