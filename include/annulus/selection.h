#ifndef ANNULUS_SELECTION_H_
#define ANNULUS_SELECTION_H_

// Chooses at each run, on the device and from Q and K themselves, which blocks attention visits:
//
//   Selection selection;
//   selection.max_blocks = 32;                          // of each row of blocks, by pooled scores
//   Plan plan = device.plan(problem, selection);         // once
//   plan.run(stream, operands, workspace);               // per step: chooses, lists, attends
//
// Block (i, j) has rows [i R, (i + 1) R) of Q and rows [j C, (j + 1) C) of K, as far as they exist.
// Each query head of each batch chooses for itself, for each row of blocks, among the blocks that
// the problem's pattern shows some query of that row. The answer is exact attention over the
// pattern's pairs in the chosen blocks.
//
// The host takes no part: a run puts a few small kernels before the attention on the same stream,
// and like any run it allocates nothing, takes no lock, never waits and can be captured in a graph.
// Its memory is in the plan's workspace, whose size is known when the problem is planned. The same
// operands give the same blocks on every device, and on the host (docs/selection.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "annulus/device.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

enum class SelectionRule : int {
  kTopK = 1,   // the best `max_blocks` of a row
  kTopP = 2,   // the best ones, until together they have `mass` of the row's softmax over blocks
  kGiven = 3,  // what the caller lists in SelectionBuffers::given
};

// How a block is scored, before the problem's scale; soft-cap, ALiBi and bias are ignored.
enum class Pool : int {
  kMean = 1,  // mean of Q's rows . mean of K's rows: the mean of all products
  kMax = 2,   // maximum of Q's rows . maximum of K's rows, taken element by element
  // Products on antidiagonals, which every vertical line and every slash of the block crosses (Xu
  // et al., "XAttention: Block Sparse Attention with Antidiagonal Scoring", 2025): the block is cut
  // into cells of S x S, a cell's score is the mean of the products on its antidiagonal, each row
  // of cells has a softmax over all cells of the visible blocks, and the block's score is the sum
  // over its cells. It costs 1 / S of all products.
  kAntidiagonal = 3,
};

struct Selection {
  std::int64_t block_rows = 128;     // R >= 1
  std::int64_t block_columns = 128;  // C >= 1
  SelectionRule rule = SelectionRule::kTopK;
  // Blocks of a row, including those that are always kept. kTopK: this many are taken, as far as
  // they are visible. kTopP: at most this many; 0 means no bound, and the workspace has room for
  // all. kGiven: the entries of a row of `given`.
  std::int64_t max_blocks = 0;
  double mass = 0.95;  // p of kTopP, in (0, 1], resolved to 2^-20; 1 takes every visible block
  Pool pool = Pool::kMean;
  // S of kAntidiagonal: divides R and C, and C / S is a power of two up to 64.
  std::int64_t stride = 16;
  // A coarse pass that narrows the fine one: blocks of f R x f C are scored by their means first,
  // and the best `coarse_blocks` of each row are kept, including those that hold a block which is
  // always kept. Only blocks inside them can be chosen. f is 2 or more; 0 means no coarse pass.
  std::int64_t coarse_factor = 0;
  std::int64_t coarse_blocks = 0;
  // Blocks that are always kept where they are visible: the first sink_blocks columns, and the
  // blocks that hold the positions of the row's own queries together with diagonal_blocks - 1
  // blocks to their left (0: none).
  std::int64_t sink_blocks = 1;
  std::int64_t diagonal_blocks = 1;

  std::int64_t rows(std::int64_t seq_q) const { return (seq_q + block_rows - 1) / block_rows; }
  std::int64_t columns(std::int64_t seq_k) const {
    return (seq_k + block_columns - 1) / block_columns;
  }
};

// Device memory of one run besides the operands; it must stay until the work has ended. 4-byte
// aligned.
struct SelectionBuffers {
  // With kGiven, else null: [B, H, rows, max_blocks], indices of block columns in any order. An
  // entry that is no block column (-1 as padding, any number out of range) is skipped, and so is a
  // block that the pattern hides from the row; a block named twice counts once.
  const std::int32_t* given = nullptr;
  // Null, or memory for the chosen blocks: [B, H, rows, max_chosen], ascending, then -1. It can be
  // the `given` of a later run.
  std::int32_t* chosen = nullptr;
  // Entries of a row of `chosen`; a row with more blocks writes only the first ones.
  std::int64_t max_chosen = 0;
};

// Keeps a set of blocks from step to step and changes it little by little: after each run the
// attention that every kept block received is measured, and now and then an update adds the best
// blocks outside and drops the least used ones inside.
//
//   Selection selection;                                  // rule kGiven
//   Plan plan = device.plan(problem, selection);
//   ImportanceTracker tracker(device, problem, selection, {.max_added = 2, .max_dropped = 2});
//   plan.run(stream, operands, workspace, {.given = blocks});
//   tracker.measure(stream, operands, blocks, state, own_workspace);   // after any run
//   tracker.update(stream, operands, blocks, state, own_workspace);    // every so many steps
//
// Everything runs on the device, on the caller's stream. No call allocates, locks or waits, and all
// can be captured in a graph. The same operands and state give the same blocks.
//
// An update of one row of blocks: while fewer than Selection::max_blocks are kept besides sink and
// diagonal blocks, the visible block with the best score (Selection::pool) is added. Then the best
// block outside replaces the block inside with the least measured mass, as long as its share of the
// row's softmax over block scores is larger than that block's share of the measured mass. At most
// `max_added` blocks are added and `max_dropped` dropped; of equal scores the lower column is
// added, of equal masses the higher column is dropped. Sink and diagonal blocks are never dropped.

struct TrackerOptions {
  std::int64_t max_added = 1;    // A: blocks of a row that one update may add
  std::int64_t max_dropped = 1;  // B: blocks of a row that one update may drop
  WorkLimit work = {};           // of planning
};

// Immutable; copies share. Any number of threads may use one at a time, each with a state and a
// workspace of its own.
class ANNULUS_EXPORT ImportanceTracker {
 public:
  // `problem` and `selection` are those of the plan whose runs are measured. Throws what
  // Device::plan throws, and Error{kInvalidArgument} where the problem asks for no LSE, the rule is
  // not kGiven, R or C is no multiple of 8 or a number is out of range; Error{kUnsupported} for
  // Pool::kAntidiagonal and more than 65535 batches.
  ImportanceTracker(const Device& device, const Problem& problem, const Selection& selection,
                    const TrackerOptions& options = {});

  // Masses of all blocks: uint64 [B, H, rows, columns], in 2^-32 of one query's attention. Kept by
  // the caller between calls, 16-byte aligned, and zeros before the first.
  std::size_t state_bytes() const;
  // Scratch memory of every call, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Adds the mass that each kept block received in the run of these operands, whose LSEs
  // `operands.lse` holds. Q and K must be as they were in the run, which they are not where O was
  // written over Q. It reads K of the kept blocks once more.
  void measure(void* stream, const Operands& operands, const std::int32_t* given, void* state,
               void* workspace) const;

  // Changes `given`, [B, H, rows, max_blocks] as in SelectionBuffers, and sets the masses back to
  // 0. Sink and diagonal blocks are always kept and therefore not written to it. Blocks are scored
  // from these operands.
  void update(void* stream, const Operands& operands, std::int32_t* given, void* state,
              void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// How much of the attention a sparse run saw: for each query, the share of its softmax mass over
// all pairs that the problem's pattern shows which belongs to the pairs that were attended to. It
// is exact and costs a run over all those pairs, so it is for judging a selection and not for
// serving with it.
//
//   RecallMeter meter(device, problem);
//   plan.run(stream, operands, workspace);              // of device.plan(problem, selection)
//   meter.run(stream, operands, recall, own_workspace);

// Immutable; copies share. Any number of threads may run one at the same time.
class ANNULUS_EXPORT RecallMeter {
 public:
  // `problem` is that of the runs that are judged and has want_lse. Throws Error{kInvalidArgument}
  // where it does not, and what Device::plan throws.
  RecallMeter(const Device& device, const Problem& problem, const PlanOptions& options = {});

  // Scratch memory that every concurrent run needs of its own, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Writes `recall`, fp32 [B, H, Sq]: exp(lse - LSE over all pairs), and 1 for a query that sees no
  // key. Up to rounding it is never above 1. `operands` are those of the run, whose LSEs
  // `operands.lse` holds by then; Q, K and V must be as they were in the run, which they are not
  // where O was written over Q. Asynchronous, as Plan::run. With a carried state both LSEs include
  // the state that came in.
  void run(void* stream, const Operands& operands, float* recall, void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The mean and the least recall of all queries, from host memory; both are 1 where there is no
// query.
struct RecallSummary {
  double mean = 1;
  double least = 1;
};
ANNULUS_EXPORT RecallSummary summarise_recall(std::span<const float> recall);

}  // namespace annulus::inline v0

#endif  // ANNULUS_SELECTION_H_
