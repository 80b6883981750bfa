#ifndef ANNULUS_SELECTION_H_
#define ANNULUS_SELECTION_H_

// Selects at each run, on the device and from Q and K, the blocks that attention visits:
//
//   Selection selection;
//   selection.max_blocks = 32;                          // of each row of blocks, by pooled scores
//   Plan plan = device.plan(problem, selection);         // once
//   plan.run(stream, operands, workspace);               // per step: selects, lists, attends
//
// Block (i, j) has rows [i R, (i + 1) R) of Q and rows [j C, (j + 1) C) of K, clipped to the
// tensors. Each query head of each batch selects separately, for each row of blocks, among the
// blocks that contain a visible pair of the problem's pattern. The result is exact attention over
// the visible pairs in the selected blocks.
//
// The host takes no part: a run puts a few small kernels before the attention on the same stream,
// and like any run it allocates nothing, takes no lock, does not wait and can be captured in a
// graph. Its memory is in the plan's workspace. Equal operands give equal blocks on every device
// and on the host (docs/selection.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "annulus/device.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

enum class SelectionRule : int {
  kTopK = 1,   // the best `max_blocks` blocks of a row
  kTopP = 2,   // the best blocks until their sum is `mass` of the row's softmax over blocks
  kGiven = 3,  // the caller's list in SelectionBuffers::given
};

// How a block is scored. The scale applies afterwards; soft-cap, ALiBi and bias are ignored.
enum class Pool : int {
  kMean = 1,  // mean of Q's rows . mean of K's rows: the mean of all products
  kMax = 2,   // maximum of Q's rows . maximum of K's rows, element by element
  // Products on antidiagonals, which cross every vertical line and every slash of the block (Xu et
  // al., "XAttention: Block Sparse Attention with Antidiagonal Scoring", 2025). The block is cut
  // into cells of S x S. The score of a cell is the mean of the products on its antidiagonal. Each
  // row of cells has a softmax over all cells of the visible blocks, and the block's score is the
  // sum over its cells. It computes 1 / S of all products.
  kAntidiagonal = 3,
};

struct Selection {
  std::int64_t block_rows = 128;     // R >= 1
  std::int64_t block_columns = 128;  // C >= 1
  SelectionRule rule = SelectionRule::kTopK;
  // The blocks of a row, including those that are always kept. kTopK: this number is selected if
  // that many are visible. kTopP: at most this number; 0: no bound, and the workspace has room for
  // all blocks. kGiven: the entries of a row of `given`.
  std::int64_t max_blocks = 0;
  double mass = 0.95;  // p of kTopP, in (0, 1], with steps of 2^-20; 1 selects every visible block
  Pool pool = Pool::kMean;
  // S of kAntidiagonal: divides R and C, and C / S is a power of two up to 64.
  std::int64_t stride = 16;
  // A coarse pass before the fine one: blocks of f R x f C are scored by their means, and each row
  // keeps the best `coarse_blocks`, including those that contain an always-kept block. Only blocks
  // inside them can be selected. f is 2 or more; 0: no coarse pass.
  std::int64_t coarse_factor = 0;
  std::int64_t coarse_blocks = 0;
  // Blocks that are always kept if they are visible: the first sink_blocks columns, and the blocks
  // with the positions of the row's own queries and diagonal_blocks - 1 blocks to their left (0:
  // none).
  std::int64_t sink_blocks = 1;
  std::int64_t diagonal_blocks = 1;

  std::int64_t rows(std::int64_t seq_q) const { return (seq_q + block_rows - 1) / block_rows; }
  std::int64_t columns(std::int64_t seq_k) const {
    return (seq_k + block_columns - 1) / block_columns;
  }
};

// Further device memory of one run, 4-byte aligned. It must stay until the work has ended.
struct SelectionBuffers {
  // With kGiven, else null: [B, H, rows, max_blocks], indices of block columns in any order.
  // Entries that are not a block column (-1 as padding, any number out of range), and blocks that
  // the pattern hides from the row, are skipped. A repeated block counts once.
  const std::int32_t* given = nullptr;
  // Null, or memory for the selected blocks: [B, H, rows, max_chosen], ascending, padded with -1.
  // It can be the `given` of a later run.
  std::int32_t* chosen = nullptr;
  // Entries of a row of `chosen`; further blocks of a row are not written.
  std::int64_t max_chosen = 0;
};

// ---- Importance trackers
//
// An ImportanceTracker keeps a set of blocks from step to step and changes it little by little:
// after each run it measures the attention that every kept block received, and an occasional update
// adds the best blocks outside and drops the least used blocks inside.
//
//   Selection selection;                                  // rule kGiven
//   Plan plan = device.plan(problem, selection);
//   ImportanceTracker tracker(device, problem, selection, {.max_added = 2, .max_dropped = 2});
//   plan.run(stream, operands, workspace, {.given = blocks});
//   tracker.measure(stream, operands, blocks, state, own_workspace);   // after any run
//   tracker.update(stream, operands, blocks, state, own_workspace);    // every few steps
//
// Everything runs on the device in stream order. No call allocates, locks or waits, and all can be
// captured in a graph. Equal operands and states give equal blocks.
//
// An update of one row of blocks: while fewer than Selection::max_blocks are kept, not counting
// sink and diagonal blocks, it adds the visible block with the best score (Selection::pool). Then
// the best block outside replaces the block inside with the least measured mass, as long as its
// share of the row's softmax over block scores exceeds that block's share of the measured mass. At
// most `max_added` blocks are added and `max_dropped` dropped. Of equal scores the lower column is
// added; of equal masses the higher column is dropped. Sink and diagonal blocks are never dropped.

struct TrackerOptions {
  std::int64_t max_added = 1;    // A: blocks of a row that one update may add
  std::int64_t max_dropped = 1;  // B: blocks of a row that one update may drop
  WorkLimit work = {};           // limit of planning
};

// A tracker is immutable, and copies share it. Any number of threads may use it at a time, each
// with its own state and workspace.
class ANNULUS_EXPORT ImportanceTracker {
 public:
  // `problem` and `selection` must be the ones of the measured plan. Throws the errors of
  // Device::plan; Error{kInvalidArgument} if the problem has no want_lse, the rule is not kGiven, R
  // or C is not a multiple of 8, or a number is out of range; and Error{kUnsupported} for
  // Pool::kAntidiagonal and more than 65535 batches.
  ImportanceTracker(const Device& device, const Problem& problem, const Selection& selection,
                    const TrackerOptions& options = {});

  // Bytes of the masses of all blocks: uint64 [B, H, rows, columns], in units of 2^-32 of one
  // query's attention, 16-byte aligned. The caller keeps them between calls and fills them with
  // zeros before the first.
  std::size_t state_bytes() const;
  // Bytes of scratch memory of every call, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Adds the mass that each kept block received in the run of these operands, from the LSEs in
  // `operands.lse`. Q and K must be unchanged since the run, so O must not have been written over
  // Q. It reads K of the kept blocks once more.
  void measure(void* stream, const Operands& operands, const std::int32_t* given, void* state,
               void* workspace) const;

  // Changes `given`, [B, H, rows, max_blocks] as in SelectionBuffers, by scores of these operands,
  // and sets the masses to 0. `given` has no sink and diagonal blocks, which are always kept.
  void update(void* stream, const Operands& operands, std::int32_t* given, void* state,
              void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// ---- Recall
//
// A RecallMeter measures how much of the attention a sparse run computed: for each query, the
// softmax mass of the pairs that were attended to over the mass of all visible pairs of the
// problem's pattern. The value is exact, but it costs a run over all visible pairs, so it is meant
// for judging a selection and not for serving.
//
//   RecallMeter meter(device, problem);
//   plan.run(stream, operands, workspace);              // of device.plan(problem, selection)
//   meter.run(stream, operands, recall, own_workspace);

// A meter is immutable, and copies share it. Any number of threads may run it at a time.
class ANNULUS_EXPORT RecallMeter {
 public:
  // `problem` must be the one of the judged runs, with want_lse. Throws Error{kInvalidArgument}
  // without want_lse, and the errors of Device::plan.
  RecallMeter(const Device& device, const Problem& problem, const PlanOptions& options = {});

  // Bytes of scratch memory, 16-byte aligned; concurrent runs need separate memory.
  std::size_t workspace_bytes() const;

  // Writes `recall`, fp32 [B, H, Sq]: exp(lse - LSE over all pairs), or 1 for a query without
  // visible keys. It never exceeds 1 but for rounding. `operands` are the operands of the run,
  // whose LSEs are in `operands.lse`. Q, K and V must be unchanged since the run, so O must not
  // have been written over Q. Asynchronous, like Plan::run. With a carried state both LSEs include
  // the state that was read.
  void run(void* stream, const Operands& operands, float* recall, void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The mean and the least recall of all queries, from host memory; both are 1 without queries.
struct RecallSummary {
  double mean = 1;
  double least = 1;
};
ANNULUS_EXPORT RecallSummary summarise_recall(std::span<const float> recall);

}  // namespace annulus::inline v0

#endif  // ANNULUS_SELECTION_H_
