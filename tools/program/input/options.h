#ifndef ANNULUS_PROGRAM_INPUT_OPTIONS_H_
#define ANNULUS_PROGRAM_INPUT_OPTIONS_H_

// The command line as plain data. What an option means is in its help text (options.cc).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/types.h"

namespace CLI {
class App;
}

namespace annulus::program {

// Exit codes of every verb.
enum class Exit : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kPartial = 3,  // or nothing was compared
  kDevice = 4,
  kInvalidFile = 5,
  kWrongResult = 6,
};
Exit exit_code(ErrorCode code);

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

// RunArguments::ranks where this process is one rank, as the launcher that started it says.
constexpr int kLaunchedRanks = 0;
constexpr int kDefaultDeadline = 30000;  // milliseconds

struct RunArguments {
  DeviceArguments device;
  ProblemArguments problem;
  BatchArguments batch;
  int ranks = 1;
  std::string shard = "zigzag";
  std::string route = "auto";
  bool processes = false;       // starts a process for each rank
  std::string rendezvous;       // where launched ranks meet; empty: where the launcher says
  std::optional<int> deadline;  // milliseconds that ranks of processes wait; 0: any time
  bool go_on = false;           // without ranks that have died or are late
  std::string seat;             // of a process that was started: "RANK:FOLDER" (ring_processes.h)
  std::string picture;          // where to draw the ring's schedule; empty: nowhere
  std::string output;
  bool no_check = false;
  bool no_wait = false;  // runs with a general kernel first
  int repeat = 1;
  bool json = false;
};

struct ExplainArguments {
  DeviceArguments device;
  ProblemArguments problem;
  BatchArguments batch;
  bool source = false;
  bool brief = false;
  bool json = false;
};

struct TuneArguments {
  DeviceArguments device;
  ProblemArguments shape;
  std::string shapes;  // a file or the name of a preset; empty: the one shape of the options
  bool given = false;  // whether anything says what to tune
  std::string carry = "none";
  BatchArguments batch;  // in place of a shape, where it has requests
  int ranks = 0;         // of a ring, whose step is tuned; 0: the shape itself
  std::string shard = "zigzag";
  double time_limit_seconds = 0;
  bool exhaustive = false;
  bool force = false;
  bool dry_run = false;
  bool cold_cache = false;
  bool keep_journal = false;
  std::string model;    // of annulus/kernels.h, in place of shapes
  bool models = false;  // list them
  std::string replay;   // a journal to decide again from; empty: tune
  bool json = false;
};

struct TuneReportArguments {
  std::vector<std::string> paths;  // journals, results, packs, folders; empty: the search path
  std::string tuned;               // as ANNULUS_TUNED
  std::string output;
  bool json = false;
};

struct TunedArguments {
  std::string path;  // as ANNULUS_TUNED
  std::string name;  // show: part of an entry's name or path; empty: all
  bool json = false;
};

// What people do with tuned results besides reading them. Each verb reads what its help names.
struct PackArguments {
  DeviceArguments device;       // verify, why, prune: --tuned is that of the device's
  ProblemArguments shape;       // why
  std::string carry = "none";   // why
  BatchArguments batch;         // why, in place of a shape
  std::int64_t max_blocks = 0;  // why: blocks of a row that each run chooses; 0: it chooses none
  std::string selected_blocks = "128x128";  // why: their size
  std::vector<std::string> packs;  // import, merge, verify; diff: the two that are compared
  std::string output;              // export, merge: the pack that is written
  std::string name;                // export, import, remove
  std::string of;                  // export, import: part of a device's identity
  bool measured = false;           // export, import
  bool complete = false;           // export, import
  bool others = false;             // prune: also what is of other devices
  bool dry_run = false;            // prune, remove
  int measure = 0;                 // verify
  bool json = false;
};

struct WarmArguments {
  std::string shapes;  // a file or the name of a preset; may be empty with the next three
  std::string model;   // of annulus/kernels.h
  bool general = false;
  std::vector<std::string> from;  // folders of compiled kernels
  std::string into;
  std::vector<std::string> devices;
  std::vector<std::string> architectures;
  std::string templates;
  std::string tuned;  // as ANNULUS_TUNED
  int threads = 0;    // 0: one per processor
  std::int64_t max_work = kDefaultWorkSteps;
  bool verbose = false;
  bool json = false;
};

struct CacheArguments {
  std::string cache_dir;  // as ANNULUS_CACHE_DIR
  double older_than_seconds = -1;
  std::int64_t max_bytes = -1;
  bool useless = false;
  bool dry_run = false;
  bool remove = false;
  bool json = false;
};

struct DoctorArguments {
  DeviceArguments device;
  bool json = false;
};

void add_options(CLI::App& app, RunArguments* arguments);
void add_options(CLI::App& app, ExplainArguments* arguments);
void add_options(CLI::App& app, DoctorArguments* arguments);
void add_options(CLI::App& app, TuneArguments* arguments);
// These options are those of a verb below `tune`, with whose own options it is not given.
void add_options(CLI::App& app, TuneReportArguments* arguments);
void add_options(CLI::App& app, WarmArguments* arguments);
void add_list_options(CLI::App& app, CacheArguments* arguments);
void add_prune_options(CLI::App& app, CacheArguments* arguments);
void add_verify_options(CLI::App& app, CacheArguments* arguments);
void add_list_options(CLI::App& app, TunedArguments* arguments);
void add_show_options(CLI::App& app, TunedArguments* arguments);
void add_export_options(CLI::App& app, PackArguments* arguments);
void add_import_options(CLI::App& app, PackArguments* arguments);
void add_merge_options(CLI::App& app, PackArguments* arguments);
void add_diff_options(CLI::App& app, PackArguments* arguments);
void add_verify_options(CLI::App& app, PackArguments* arguments);
void add_prune_options(CLI::App& app, PackArguments* arguments);
void add_remove_options(CLI::App& app, PackArguments* arguments);
void add_why_options(CLI::App& app, PackArguments* arguments);

// The search path that an option says: absolute, "" for "none", nothing where it is not given.
std::optional<std::string> tuned_path_of(const std::string& option);

DeviceOptions device_options(const DeviceArguments& arguments);
PlanOptions plan_options(const ProblemArguments& arguments);

void add_max_work(CLI::App& app, std::int64_t* to);

// The text of an option, or where it is "@file" that of the file. Throws Error{kFile,
// kInvalidFile}.
std::string text_or_file(const std::string& text);
// The pattern that --pattern says. Throws as text_or_file, and TextError (text_error.h) for a text
// that does not parse.
Pattern parse_pattern(const std::string& option);

// Each verb prints its results to stdout and throws Error.
Exit run(const RunArguments& arguments);
Exit explain(const ExplainArguments& arguments);
// The same of a batch of requests, called by run() and explain().
Exit run_batch(const RunArguments& arguments);
Exit explain_batch(const ExplainArguments& arguments);
Exit doctor(const DoctorArguments& arguments);
Exit tune(const TuneArguments& arguments);
Exit report_tuning(const TuneReportArguments& arguments);
Exit warm(const WarmArguments& arguments);
Exit list_cache(const CacheArguments& arguments);
Exit prune_cache(const CacheArguments& arguments);
Exit verify_cache(const CacheArguments& arguments);
Exit list_tuned(const TunedArguments& arguments);
Exit show_tuned(const TunedArguments& arguments);
Exit export_tuned(const PackArguments& arguments);
Exit import_tuned(const PackArguments& arguments);
Exit merge_tuned(const PackArguments& arguments);
Exit diff_tuned(const PackArguments& arguments);
Exit verify_tuned(const PackArguments& arguments);
Exit prune_tuned(const PackArguments& arguments);
Exit remove_tuned(const PackArguments& arguments);
Exit why_tuned(const PackArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_OPTIONS_H_
