#ifndef ANNULUS_PROGRAM_INPUT_OPTIONS_H_
#define ANNULUS_PROGRAM_INPUT_OPTIONS_H_

// The options that several verbs share, as plain data, and the functions that add them to the
// command line. The help text of an option (options.cc) gives its meaning.

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
  std::string cache_dir;  // like ANNULUS_CACHE_DIR; "none" keeps nothing on disk
  std::string tuned;      // like ANNULUS_TUNED; "none" searches nowhere
  std::string kernels;    // like ANNULUS_KERNELS; "none" searches nowhere
  bool verbose = false;
  std::string trace;      // file for a trace of the process; empty: no trace
  std::string shape_log;  // file for a log of the planned shapes; empty: no log
};

struct ProblemArguments {
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 0;  // 0: equal to heads
  // Batches of K and V: 1, which every batch of Q reads, or 0 for the same number as batch.
  std::int64_t kv_batch = 0;
  std::int64_t seq = 1024;  // number of queries, and of keys unless seq_k is given
  std::optional<std::int64_t> seq_k;
  // Position of the first query, as in Problem; k0 is the position of the first key.
  std::optional<std::int64_t> q0;
  std::optional<std::int64_t> k0;
  std::string dim = "128";                  // "128", or "192/128"
  std::string dtype;                        // empty: bf16, or the dtype of the file
  std::optional<std::int64_t> scale_block;  // rows per scale, only with e4m3; not given: 64
  std::string pattern = "dense";            // or "@file"
  std::string block;                        // "128x128": the block size for the block density
  std::string scale;                        // empty: 1 / sqrt(Dqk)
  double softcap = 0;
  std::string score;  // text of a Score, or "@file"
  std::int64_t layer = 0;
  // Keys of the whole sequence, as in Problem; only for shapes.
  std::optional<std::int64_t> total_k;
  std::string dtype_o;          // dtype of O if Q, K and V are e4m3: bf16 or fp16; only for shapes
  int max_multiprocessors = 0;  // see PlanOptions; only for shapes compiled ahead
  std::string lse_base = "natural";
  std::string input;   // a safetensors file; empty: random operands
  std::string layout;  // empty: bshd
  std::uint64_t seed = 0;
  std::string config;
  int kv_splits = 0;                          // see PlanOptions
  std::int64_t max_work = kDefaultWorkSteps;  // see WorkLimit::steps
};

// A batch of requests in place of one problem. It is used if `requests` or `most` is given.
struct BatchArguments {
  std::optional<std::string> requests;  // "1/4096 x 8, 512/2048"
  // Bounds, only for shapes; without requests in it: the bounds of `requests`.
  BatchBounds most;
  // The next four members are used for shapes only. BatchProblem describes them.
  std::int64_t block_keys = 0;
  std::int64_t max_blocks = 0;
  bool row_limits = false;
  std::string interleave;       // "16/4/1": a block, ranks, rank; empty: all keys
  std::int64_t page = 16;       // rows of a page; 0: no pages
  std::string table = "dense";  // or csr
  std::int64_t part_keys = 0;   // see BatchOptions
  std::string kv_dtype;         // empty: the dtype of Q
  // If an option was given that batches do not accept: an error text with its name and the reason.
  std::string refused;

  bool given() const { return requests || most.requests != 0; }
};

// `others` names further devices that the verb accepts. It is added to the help of --device.
void add_device(CLI::App& app, DeviceArguments* to, const std::string& others = "");
// Adds the options of a problem with its operands.
void add_problem(CLI::App& app, ProblemArguments* to);
// Adds the options of a shape, which has no operands.
void add_shape_options(CLI::App& app, ProblemArguments* shape, std::string* carry);
// Adds the options of a batch in place of a problem. Requires: the options of a problem or a shape
// were added.
void add_batch(CLI::App& app, BatchArguments* to);
// Adds the bounds of a batch, as an engine plans it. If requests are given together with bounds,
// they are the step that is measured. Requires: add_batch() was called.
void add_bounds(CLI::App& app, BatchArguments* to);
CLI::Option* add_shard(CLI::App& app, std::string* to);
void add_max_work(CLI::App& app, std::int64_t* to);
CLI::Option* add_json(CLI::App& app, bool* to);
// Adds --tuned for a verb that opens no device.
CLI::Option* add_tuned_path(CLI::App& app, std::string* to);

// Rejects an empty word, which may come from an unset variable of the shell. An empty word is not
// the same as an absent option.
CLI::Validator not_empty();

// The search path of an option: absolute, "" for "none", and nothing if the option is absent.
std::optional<std::string> tuned_path_of(const std::string& option);

DeviceOptions device_options(const DeviceArguments& arguments);
PlanOptions plan_options(const ProblemArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_OPTIONS_H_
