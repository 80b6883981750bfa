// Mutants of the kernels of batches. Each mistake must cause a fault of the checked mode, or a
// wrong answer of some request.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "batch/step_mutants.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::kEarly;
using test::kElsewhere;
using test::kWrong;
using test::Mutant;
using test::Request;

constexpr char kDecode[] = "kernels/batch/decode_forward.cu";
constexpr char kChunk[] = "kernels/batch/chunk_forward.cu";
constexpr char kCombine[] = "kernels/batch/combine_parts.cu";
constexpr char kPrepare[] = "kernels/batch/prepare_batch.cu";
constexpr char kTiles[] = "tile/part_tiles.cuh";
constexpr char kWindow[] = "tile/key_window.cuh";
constexpr char kRow[] = "tile/batch_row.cuh";
constexpr char kScores[] = "tile/packed_scores.cuh";

const std::set<std::string> kRace = {"shared memory race"};

std::vector<Mutant> mutants() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      // Mistakes with pages.
      {"the next page is read",
       {{kWindow, "k_page_[i] = k_pages_[entry];", "k_page_[i] = k_pages_[entry + 1];"}},
       kElsewhere},
      {"V has the pages of K",
       {{kWindow, "v_page_[i] = v_pages_ == k_pages_ ? k_page_[i] : v_pages_[entry];",
         "v_page_[i] = k_page_[i];"}},
       kElsewhere},
      {"a request has the pages of the next one",
       {{kWindow, "table.begin[row.request]", "table.begin[row.request + 1]"}},
       kElsewhere},
      {"keys that no query sees are copied",
       {{kWindow,
         "(some_[look] >> at & 1u) != 0 &&\n                         row_.runs.template "
         "sees<kRuns>(key);",
         "(some_[look] >> at & 1u) != 0;"}},
       kElsewhere},
      {"the row in a page is a key",
       {{kWindow,
         "const int row = unit.key - kernels::page_of(params_, unit.key) * params_.page_rows;",
         "const int row = unit.key;"}},
       kElsewhere},
      {"threads copy the row behind theirs",
       {{"tile/row_copier.cuh", "row_ % kUnit * row_bytes", "(row_ + 1) % kUnit * row_bytes"}},
       kElsewhere},
      // Mistakes with keys that do not exist.
      {"keys beyond the end are not hidden",
       {{kScores, "if (full && there.all()) return;", "if (full || there.all()) return;"}},
       kWrong},
      {"the pattern hides nothing",
       {{kScores, "if (!full) {", "if (!full && first_key < 0) {"}},
       kWrong},
      // Mistakes with heads and queries.
      {"a head of another group",
       {{kRow, "head = column / params.head_tiles * params.group + of_group + of_tile;",
         "head = column / params.head_tiles + of_group + of_tile;"}},
       kElsewhere},
      {"positions of the first query for all",
       {{kRow, "query = row / params.tile_heads;", "query = row / params.tile_heads * 0;"}},
       kElsewhere},
      // Mistakes in waits.
      {"keys are not waited for",
       {{kDecode, "ptx::wait_copies<kStages - 2>();", "ptx::wait_copies<kStages - 1>();"}},
       kEarly},
      {"no barrier before a chunk's tile is read",
       {{kChunk, "ptx::wait_copies<kStages - 2>();\n        __syncthreads();",
         "ptx::wait_copies<kStages - 2>();"}},
       kEarly},
      {"Q is not waited for",
       {{kDecode, "__syncthreads();\n        query.keep();", "query.keep();"}},
       kEarly},
      {"states of warps are joined before they are there",
       {{kDecode,
         "tile::stage_rows(state, output, 0, mine, kAccPitch, lane);\n    __syncthreads();",
         "tile::stage_rows(state, output, 0, mine, kAccPitch, lane);"}},
       kEarly},
      {"a step's keys are read before every lane has waited",
       {{kDecode, "ptx::wait_copies<kStages - 2>();\n        __syncwarp();",
         "ptx::wait_copies<kStages - 2>();"}},
       kEarly},
      {"the next work writes over the states of this one",
       {{kDecode, "    __syncthreads();\n  }\n}", "  }\n}"}},
       kEarly},
      {"the next chunk's work writes over the output of this one",
       {{kChunk, "    __syncthreads();\n  }\n}", "  }\n}"}},
       kEarly},
      // Mistakes with parts.
      {"the last part is joined twice",
       {{kCombine, "if (thread < parts) take(", "if (thread <= parts) take("}},
       kElsewhere},
      {"every part is the first",
       {{kRow, "slot_row(params, tile, work.part, column, packed)",
         "slot_row(params, tile, 0, column, packed)"}},
       kElsewhere},
      {"a part begins at the first tile",
       {{kDecode, "const int first_tile = work.part * params.part_tiles;",
         "const int first_tile = 0 * work.part;"}},
       kWrong},
      // Mistakes with lists.
      {"the last part of a row is not listed",
       {{kPrepare, "tables.works[atomicAdd(&bins[bin_of(of, last)], 1)] = {at, parts - 1};",
         "tables.works[atomicAdd(&bins[bin_of(of, last)], 1)] = {at, 0};"}},
       kElsewhere},
      {"rows of several parts share their slots",
       {{kPrepare, "const long long slots_before = slots + of_slots.before;",
         "const long long slots_before = slots;"}},
       kElsewhere},
      {"bins are added up before all parts are in them",
       {{kPrepare, "joined += of_joined.all;\n  }\n  __syncthreads();",
         "joined += of_joined.all;\n  }"}},
       kRace},
      {"parts take places before it is known where bins begin",
       {{kPrepare, "*tables.header = header;\n  }\n  __syncthreads();",
         "*tables.header = header;\n  }"}},
       kRace},
      {"rows begin with the request before",
       {{kPrepare, "row.q_row = request.q_begin + first_query;",
         "row.q_row = request.q_begin + first_query - 1;"}},
       kElsewhere},
      {"the lanes before are left out of a sum",
       {{"tile/scan.cuh", "if (lane > 0) scanned.before = Join::join(scanned.before, before);",
         ""}},
       kElsewhere},
  };
}

// Mistakes that only batches with lists of blocks and limits of rows can show, because their heads
// see different keys.
std::vector<Mutant> mutants_of_columns() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      {"blocks are counted before all threads have named theirs",
       {{"kernels/batch/list_blocks.cu", "atomicOr(&wrong, 1);\n  }\n  __syncthreads();",
         "atomicOr(&wrong, 1);\n  }"}},
       kRace},
      {"blocks are listed a block late",
       {{"kernels/batch/list_blocks.cu", "__ffs(bits) - 1;", "__ffs(bits);"}},
       kElsewhere},
      {"the list of another head",
       {{kPrepare, "const int head = row.column / of.head_tiles;",
         "const int head = 0 * row.column;"}},
       kElsewhere},
      {"keys beyond the list are taken for some",
       {{kTiles, "if (at >= listed_) return -(1 << 30);", ""}},
       kElsewhere},
      {"keys of a block begin anew",
       {{kTiles, "(at - entry * block_keys_);", "(at - entry * block_keys_) % 16;"}},
       kWrong},
      {"all keys of a step are hidden as the first ones are",
       {{kScores, "keys.there.group(group)", "keys.there.group(0)"}},
       kWrong},
      {"every column sees what the first one sees",
       {{kPrepare, "const ColumnForms& forms = of.forms[row.column];",
         "const ColumnForms& forms = of.forms[0];"}},
       kElsewhere},
      {"the newest keys are those of any tree",
       {{"tile/row_limits.cuh", "(tree >> (newer & (kernels::kTreeKeys - 1)) & 1) != 0", "true"}},
       kWrong},
      {"a row ends where its tile does",
       {{"tile/row_limits.cuh", "key < end && in_tree", "in_tree"}},
       kWrong},
      {"all rows of a tile see its newest keys",
       {{kPrepare, "all_end = min(all_end, row->keys - kTreeKeys);", ""}},
       kWrong},
      {"parts of columns share a slot",
       {{kRow, "(static_cast<long long>(tile.slot + part) * params.row_columns + column",
         "(static_cast<long long>(part) * params.row_columns + column"}},
       kElsewhere},
  };
}

// Runs on one multiprocessor, so that one CTA computes the works one after another.
void try_all(const std::vector<Mutant>& mutants, const BatchProblem& problem,
             const std::vector<Request>& requests, std::int64_t part_keys) {
  BatchOptions options;
  options.part_keys = part_keys;
  options.max_multiprocessors = 1;
  test::try_steps(mutants, test::device_name(), problem, options, requests);
}

BatchProblem problem_for(const std::vector<Request>& requests) {
  BatchProblem problem = test::problem_for(requests, 4);
  problem.pattern = Pattern::parse("causal & window(440, 0)");
  problem.most.rows += 1;
  return problem;
}

// Long requests have several parts, and each part has several steps.
TEST_CASE("mistakes in the kernels of batches are noticed") {
  const std::vector<Request> requests = {{1, 600, 0, 1}, {2, 60, 0, 2},   {1, 17, 0, 3},
                                         {3, 400, 5, 4}, {37, 130, 0, 5}, {1, 1, 0, 6}};
  try_all(mutants(), problem_for(requests), requests, 256);
}

TEST_CASE("mistakes where columns see different keys are noticed") {
  const std::vector<Request> requests = {{1, 300, 0, 1}, {3, 258, 0, 2}, {3, 200, 5, 3},
                                         {3, 258, 0, 5}, {3, 258, 0, 6}, {3, 258, 0, 7},
                                         {3, 258, 0, 8}};
  BatchProblem problem = problem_for(requests);
  problem.pattern = Pattern::parse("head_groups(2, causal, causal & window(150, 0))");
  problem.block_keys = 32;
  problem.max_blocks = 8;
  problem.row_limits = true;
  try_all(mutants_of_columns(), problem, requests, 128);
}

}  // namespace
