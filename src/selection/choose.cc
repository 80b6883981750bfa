// Checks a selection, chooses the configuration of the attention after it, and plans that
// attention.
#include <algorithm>
#include <memory>

#include "attention/kernels/family.h"
#include "base/fail.h"
#include "params/selection_params.h"
#include "pattern/batches.h"
#include "pattern/node.h"
#include "selection/selection_plan.h"

namespace annulus::selection {
namespace {

void check_number(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kMaxPosition) return;
  base::fail(ErrorCode::kInvalidArgument,
             "{} of the selection is {}; give a number from {} to 2^30", name, value, least);
}

// Kernels number the rows of a tile of cells with 32-bit integers, including rows beyond the
// sequence.
constexpr std::int64_t kMaxStride = 65536;

void check_stride(const Selection& selection) {
  if (selection.stride < 1 || selection.stride > kMaxStride) {
    base::fail(ErrorCode::kInvalidArgument,
               "stride (S) of the selection is {}; give a number from 1 to {}", selection.stride,
               kMaxStride);
  }
  const std::int64_t cells = selection.block_columns / selection.stride;
  if (selection.block_rows % selection.stride == 0 &&
      selection.block_columns % selection.stride == 0 && kernels::kScoreTile % cells == 0) {
    return;
  }
  base::fail(ErrorCode::kInvalidArgument,
             "stride {} of the selection does not fit blocks of {} x {}: it must divide both, "
             "and the columns into a power of two of cells, at most {}",
             selection.stride, selection.block_rows, selection.block_columns,
             static_cast<int>(kernels::kScoreTile));
}

void check_coarse(const Selection& selection) {
  const std::int64_t factor = selection.coarse_factor;
  if (factor == 0) return;
  check_number("coarse_factor", factor, 2);
  check_number("coarse_blocks", selection.coarse_blocks, 1);
  check_number("coarse_factor x block_rows", factor * selection.block_rows, 1);
  check_number("coarse_factor x block_columns", factor * selection.block_columns, 1);
  if (selection.rule != SelectionRule::kGiven) return;
  base::fail(ErrorCode::kInvalidArgument,
             "coarse_factor is {}, but blocks that the caller lists are not chosen; set it to 0",
             factor);
}

// Bounds on the rows of blocks of all heads, and on the words of 32 blocks that the host stores.
// The host stores bits only for heads that differ in what they see.
constexpr std::int64_t kMaxRows = std::int64_t{1} << 28;
constexpr std::int64_t kMaxWords = std::int64_t{1} << 30;

void check_blocks(const Problem& problem, const Selection& selection) {
  const std::int64_t rows = problem.heads * selection.rows(problem.seq_q);
  const std::int64_t words = (selection.columns(problem.seq_k) + 31) / 32;
  const std::int64_t distinct =
      problem.pattern.distinct_heads(problem.heads) * selection.rows(problem.seq_q);
  if (rows <= kMaxRows && words <= kMaxWords / std::max<std::int64_t>(1, distinct)) return;
  base::fail(ErrorCode::kUnsupported,
             "blocks of {} x {} are {} rows of {} blocks over all heads, {} of them different; at "
             "most 2^28 rows and 2^35 different blocks are kept: use larger blocks",
             selection.block_rows, selection.block_columns, rows, selection.columns(problem.seq_k),
             distinct);
}

bool has_blocks(const pattern::Node& node) {
  return pattern::any_leaf(
      node, [](const pattern::leaves::Structure& leaf) { return leaf.layout != nullptr; });
}

}  // namespace

BlockLayout empty_layout(const Problem& problem, const Selection& selection) {
  BlockLayout layout;
  layout.block_rows = selection.block_rows;
  layout.block_columns = selection.block_columns;
  layout.seq_q = problem.seq_q;
  layout.seq_k = problem.seq_k;
  layout.heads = problem.heads;
  layout.indptr.assign(static_cast<std::size_t>(problem.heads * selection.rows(problem.seq_q) + 1),
                       0);
  return layout;
}

// Numbers come first, so that later checks can multiply and divide by them.
void validate(const Problem& problem, const Selection& selection) {
  check_number("block_rows (R)", selection.block_rows, 1);
  check_number("block_columns (C)", selection.block_columns, 1);
  check_number("sink_blocks", selection.sink_blocks, 0);
  check_number("diagonal_blocks", selection.diagonal_blocks, 0);
  check_number("max_blocks", selection.max_blocks, selection.rule == SelectionRule::kTopP ? 0 : 1);
  const int rule = static_cast<int>(selection.rule);
  if (rule < static_cast<int>(SelectionRule::kTopK) ||
      rule > static_cast<int>(SelectionRule::kGiven)) {
    base::fail(ErrorCode::kInvalidArgument,
               "rule {} of the selection is not a value of SelectionRule", rule);
  }
  const int pool = static_cast<int>(selection.pool);
  if (pool < static_cast<int>(Pool::kMean) || pool > static_cast<int>(Pool::kAntidiagonal)) {
    base::fail(ErrorCode::kInvalidArgument, "pool {} of the selection is not a value of Pool",
               pool);
  }
  if (selection.pool == Pool::kAntidiagonal) check_stride(selection);
  check_coarse(selection);
  if (selection.rule == SelectionRule::kTopP && !(selection.mass > 0 && selection.mass <= 1)) {
    base::fail(ErrorCode::kInvalidArgument,
               "mass of the selection is {}; give a share above 0 and up to 1", selection.mass);
  }
  if (problem.dtype == Dtype::kFloat8E4M3 && selection.rule != SelectionRule::kGiven) {
    base::fail(ErrorCode::kUnsupported,
               "blocks are scored from fp16 or bf16 operands, not from e4m3; choose them before Q "
               "and K are quantised and give them as indices (the rule of given blocks)");
  }
  check_blocks(problem, selection);
  if (problem.pattern.branches().size() > 1) {
    base::fail(ErrorCode::kUnsupported,
               "blocks of a sum(...) cannot be chosen; choose for each branch and carry the state");
  }
  if (pattern::for_batches(problem.pattern, problem.batch).batches() > 1) {
    base::fail(ErrorCode::kUnsupported,
               "the batches of this problem differ in what they see, but blocks are chosen among "
               "what all batches see alike; make a call for each batch, with "
               "its own pattern (of_batch), or leave batches(...) out");
  }
  if (has_blocks(problem.pattern.node())) {
    base::fail(ErrorCode::kUnsupported,
               "the pattern has blocks() of its own, and a kernel reads one layout; give its "
               "blocks as indices (the rule of given blocks)");
  }
}

attention::Choice choose_config(const Problem& problem, const Selection& selection,
                                const attention::DeviceLimits& limits,
                                const std::optional<OperandStrides>& strides) {
  Problem chosen = problem;
  // The heuristic reads the pattern's block sizes, so it gets a layout with the selection's block
  // sizes.
  chosen.pattern = blocks(empty_layout(problem, selection));
  return attention::choose_config(chosen, limits, strides);
}

std::optional<std::string> why_not(const attention::KernelConfig& config) {
  if (const int together = attention::cta_shape(config).packed_heads(); together > 1) {
    return fmt::format(
        "configuration '{}' computes {} heads together, but each head chooses its blocks",
        attention::to_string(config), together);
  }
  return std::nullopt;
}

attention::LaunchPlan make_plan(const Problem& problem, const Selection& selection,
                                const attention::Choice& choice,
                                const attention::DeviceLimits& limits) {
  const attention::KernelConfig& config = choice.config;
  if (const auto reason = why_not(config)) base::fail(ErrorCode::kUnsupported, "{}", *reason);
  // The kernels of the selection read the pattern's tiles and list the chosen ones among them, so
  // the pattern's tiles must be a list. If rows keep a mass, only the device knows the lengths of
  // rows.
  const bool unlike = selection.rule != SelectionRule::kTopK;
  attention::LaunchPlan plan = attention::make_plan(
      problem, choice, limits,
      {.list = attention::ListForm::kListed,
       .dealt = unlike && family_of(config).pace(config).deal == attention::Deal::kCounter
                    ? attention::Dealt::kDrawn
                    : attention::Dealt::kAsPays});
  if (selection.block_rows % config.tile_rows == 0 &&
      selection.block_columns % config.tile_columns == 0) {
    return plan;  // each tile lies in one block, so no bits of blocks are read
  }
  const std::string& base = plan.mask.text;
  // A tile may touch several blocks, of which only some are chosen. So the mask also tests the bits
  // of blocks that list_tiles writes for each tile.
  if (base == "false") return plan;  // no pair is visible, so there are no tiles
  plan.mask.text = base == "true" ? "m.blocks(q, k)" : "(" + base + ") & m.blocks(q, k)";
  plan.mask.uses_blocks = true;
  plan.features.mask = plan.mask.text;
  plan.spec = attention::kernel_spec(config, plan.features, limits.arch);
  return plan;
}

}  // namespace annulus::selection
