// Mutants of the kernel that combines the parts of split rows, and of the mma kernel where it makes
// the parts.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/mutant.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;

using test::Mutant;

// The cases that a mutant of the kernel combines.
enum Kind : int {
  kPlain,    // parts of three tiles, three and one
  kSink,     // sink logits, which differ from head to head
  kHidden,   // every third row sees nothing, the others nothing in their last part
  kSteep,    // scores rise so fast that weights relative to another part's row max overflow
  kState,    // to a state that is carried on
  kCarried,  // from a state that was carried in
  kLists,    // heads that have other long rows than the first one
  kNarrow,   // head dim 96: half of the lanes have no second pair of columns
};

constexpr char kMerge[] = "kernels/combine/combine_splits.cu";
constexpr char kForward[] = "kernels/mma/mma_forward.cu";
constexpr char kRow[] = "tile/tile_row.cuh";
constexpr char kPeak[] =
    "slot < merged.slots; ++slot) { row_max = fmaxf(row_max, split.m[first + slot * "
    "Shape::kTileRows]);";
constexpr char kSum[] = "slot < merged.slots; ++slot) { const long long at";
constexpr char kAdd[] = "acc[pair][0] += weight * low; acc[pair][1] += weight * high;";

const std::set<std::string> kWrong = {"wrong answer"};
// Outcomes if the kernel reads a slot that was never written, or the part of another row.
const std::set<std::string> kElsewhere = {"wrong answer", "uninitialised read", "out of bounds"};

std::vector<Mutant> mutants() {
  return {
      // Mistakes with slots.
      {"the first part is left out",
       {{kMerge, "int slot = 0; slot < merged.slots; ++slot) { const",
         "int slot = 1; slot < merged.slots; ++slot) { const"}},
       kWrong},
      {"the last part is left out",
       {{kMerge, kSum, "slot < merged.slots - 1; ++slot) { const long long at"}},
       kWrong},
      {"a part too many",
       {{kMerge, kSum, "slot <= merged.slots; ++slot) { const long long at"}},
       kElsewhere},
      {"parts begin a slot late",
       {{kMerge, "+ merged.first_slot)", "+ merged.first_slot + 1)"}},
       kElsewhere},
      {"every row has the first one's slots", {{kMerge, "+ merged.first_slot)", "+ 0)"}}, kWrong},
      {"every head has the first one's slots",
       {{kMerge, "((batch * params.heads + head) * split.slots",
         "(batch * params.heads * split.slots"}},
       kWrong},
      {"slots lie a row apart",
       {{kMerge, "const long long at = first + slot * Shape::kTileRows;",
         "const long long at = first + slot;"}},
       kElsewhere},
      {"the row below",
       {{kMerge, "int row = merged.row * Shape::kTileRows + in_tile;",
         "int row = merged.row * Shape::kTileRows + in_tile + 1;"}},
       {"wrong answer", "global memory race"}},
      {"heads with a list of their own join the first one's rows",
       {{kMerge, "split.merged[list * split.merged_count + ", "split.merged["}},
       {"wrong answer", "uninitialised read"},
       {},
       kLists},
      {"rows beyond the end are written",
       {{kMerge, "if (merged.slots == 0 || row >= params.seq_q) return;",
         "if (merged.slots == 0) return;"}},
       {"uninitialised read", "out of bounds", "global memory race"}},
      {"void entries of a list are rows",
       {{kMerge, "if (merged.slots == 0 || row", "if (row"}},
       {"wrong answer", "global memory race"},
       {},
       kLists},
      // Mistakes with row maxima and weights.
      {"the row_max of the first part is that of the row",
       {{kMerge, kPeak,
         "slot < 1; ++slot) { row_max = fmaxf(row_max, split.m[first + slot * "
         "Shape::kTileRows]);"}},
       kWrong,
       {},
       kSteep},
      {"the row_max is at least 0",
       {{kMerge, "float row_max = tile::minus_infinity();", "float row_max = 0.0f;"}},
       kWrong,
       {},
       kHidden},
      {"a carried row_max is at least 0",
       {{kMerge, "float row_max = tile::minus_infinity();", "float row_max = 64.0f;"}},
       kWrong,
       {},
       kState},
      {"the row_max is the least of the parts'",
       {{kMerge, "row_max = fmaxf(row_max, split", "row_max = fminf(row_max, split"},
        {kMerge, "float row_max = tile::minus_infinity();",
         "float row_max = -tile::minus_infinity();"}},
       kWrong,
       {},
       kSteep},
      {"weights are of base e",
       {{kMerge, ": ptx::exp2(of_slot - row_max);", ": __expf(of_slot - row_max);"}},
       kWrong},
      {"outputs are added without their weights",
       {{kMerge, kAdd, "acc[pair][0] += low; acc[pair][1] += high;"}},
       kWrong},
      {"odd columns are added without their weights",
       {{kMerge, kAdd, "acc[pair][0] += weight * low; acc[pair][1] += high;"}},
       kWrong},
      {"sums are added without their weights",
       {{kMerge, "sum += weight * split.l[at];", "sum += split.l[at];"}},
       kWrong},
      {"what has seen nothing is not a number",
       {{kMerge, "of_slot == row_max ? 1.0f : ptx", "ptx"}},
       kWrong,
       {},
       kHidden},
      // Mistakes in writing the result.
      {"the output is not divided by the sum",
       {{kMerge, "correction / sum;", "correction;"}},
       kWrong},
      {"a row that has seen nothing is divided by its sum",
       {{kMerge, "sum == 0.0f && row_max == tile::minus_infinity();", "false;"}},
       kWrong,
       {},
       kHidden},
      {"LSE of base 2", {{kMerge, " * params.lse_factor;", ";"}}, kWrong},
      {"LSE without the row_max",
       {{kMerge, "(row_max + ptx::log2(sum))", "ptx::log2(sum)"}},
       kWrong},
      {"LSE without the sum", {{kMerge, "(row_max + ptx::log2(sum))", "row_max"}}, kWrong},
      {"LSE of the row above in the tile",
       {{kMerge, "params.lse[row_of_all] = (row_max", "params.lse[row_of_all / 2 * 2] = (row_max"}},
       {"wrong answer", "global memory race"}},
      {"the sink has no share in the sum",
       {{kMerge, "sum = sum * correction + ptx::exp2(sink - row_max);", "sum = sum * correction;"}},
       kWrong,
       {},
       kSink},
      {"the sum keeps its row_max beside the sink's",
       {{kMerge, "sum = sum * correction +", "sum = sum +"}},
       kWrong,
       {},
       kSink},
      {"the output keeps its row_max beside the sink's",
       {{kMerge, "correction / sum;", "1.0f / sum;"}},
       kWrong,
       {},
       kSink},
      {"every head has the first one's sink",
       {{kMerge, "[head % params.score.sink_count]", "[0]"}},
       kWrong,
       {},
       kSink},
      {"a carried state is divided by its sum",
       {{kMerge, "acc_out + row_of_all * kDim + column, low, high);",
         "acc_out + row_of_all * kDim + column, low / sum, high / sum);"}},
       kWrong,
       {},
       kState},
      {"a carried sum is that of one part",
       {{kMerge, "params.l_out[row_of_all] = sum;", "params.l_out[row_of_all] = split.l[first];"}},
       kWrong,
       {},
       kState},
      // Mistakes with columns.
      {"a lane takes columns beyond the end",
       {{kMerge, "if (column >= kDim) continue; const float low", "const float low"}},
       {"wrong answer", "global memory race", "out of bounds"},
       {},
       kNarrow},
      {"even and odd columns change places",
       {{kMerge, "pack(low, high);", "pack(high, low);"}},
       kWrong},
      {"a pair begins at an odd column",
       {{kMerge, "split.acc + at * kDim + column);", "split.acc + at * kDim + column / 2);"}},
       {"misaligned address"},
       {"ptx::load_global_8"}},
      // Mistakes in making parts.
      {"every part begins with the row's first tile",
       {{kRow, "found.skip(segment.first);", ""}},
       kWrong},
      {"a part goes on to the end of the row",
       {{kRow, "found.count = segment.count;", "found.count -= segment.first;"}},
       kWrong},
      {"a part lacks its last tile",
       {{kRow, "found.count = segment.count;", "found.count = segment.count - 1;"}},
       kWrong},
      {"parts share a slot",
       {{kRow, "found.slot = segment.slot;", "found.slot = segment.slot < 0 ? -1 : 0;"}},
       {"global memory race", "uninitialised read"}},
      {"a part is a whole row",
       {{kForward, "if (row.slot >= 0) {", "if (row.slot > 0) {"}},
       {"global memory race", "uninitialised read"}},
      {"every part begins with the state that came in",
       {{kForward, "(!Shape::kSplit || row.begins)) {", "true) {"}},
       kWrong,
       {},
       kCarried},
      {"the state that came in is left out",
       {{kForward, "(!Shape::kSplit || row.begins)) {", "!Shape::kSplit) {"}},
       kWrong,
       {},
       kCarried},
      {"void segments are rows",
       {{kForward, "if (Shape::kSplit && row.row < 0) return;", ""},
        {kRow, "if (found.row < 0) return found;", ""}},
       {"out of bounds", "uninitialised read", "global memory race"},
       {},
       kLists},
      // Redundant changes, which must not be reported as mistakes.
      {"a barrier between the row_max and the sums",
       {{kMerge, "float sum = 0.0f;", "__syncwarp(); float sum = 0.0f;"}},
       {"nothing"}},
      {"unchanged", {}, {"nothing"}},
      {"unchanged, sinks", {}, {"nothing"}, {}, kSink},
      {"unchanged, hidden keys", {}, {"nothing"}, {}, kHidden},
      {"unchanged, steep", {}, {"nothing"}, {}, kSteep},
      {"unchanged, state", {}, {"nothing"}, {}, kState},
      {"unchanged, carried in", {}, {"nothing"}, {}, kCarried},
      {"unchanged, lists", {}, {"nothing"}, {}, kLists},
      {"unchanged, head dim 96", {}, {"nothing"}, {}, kNarrow},
  };
}

test::MutantRun run_of(const Mutant& mutant) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = 64 + 5;
  problem.seq_k = 64 * 6 + 3;
  problem.dim_qk = problem.dim_v = mutant.variant == kNarrow ? 96 : 64;
  problem.want_lse = true;
  switch (mutant.variant) {
    case kSink:
      problem.score.sink_logit = {4, -1};
      break;
    case kHidden:
      problem.score = Score::parse("score_mod(where((k < 256) & (mod(q, 3) != 0), score, -inf))");
      break;
    case kSteep:
      problem.score.alibi = {1, -1};
      break;
    case kState:
      problem.carry_out = true;
      problem.want_lse = false;
      break;
    case kCarried:
      problem.carry_in = true;
      break;
    case kLists:
      // The first head has one long row, which is its second; the other head has two.
      problem.pattern = heads({window(31, 31) | global({66}), dense()});
      break;
    default:
      break;
  }
  test::MutantRun run{.device = test::device_name(), .options = {}, .problem = problem};
  run.options.config = "mma m64 n64 w4 s2 x3";
  run.options.kv_splits = 3;
  run.seeds = 1;  // warps do not communicate, so their order changes nothing
  return run;
}

TEST_CASE("every mistake in making and joining parts is noticed, and redundancy is not") {
  if (!test::on_simulator()) return;
  if (test::nvrtc() == nullptr) return;
  base::ThreadPool pool;
  for (const Mutant& mutant : test::to_try(mutants())) {
    SUBCASE(mutant.name.c_str()) { test::try_mutant(mutant, run_of(mutant), pool); }
  }
}

}  // namespace
