// Mutants of the kernel that appends. Each mistake must cause a fault of the checked mode, or wrong
// contents of memory.

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "batch/append_case.h"
#include "support/device.h"
#include "support/mutant.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;
using test::AppendCase;
using test::AppendedRow;
using test::KeyRow;
using test::Mutant;

constexpr char kAppend[] = "kernels/batch/append_rows.cu";
constexpr char kParams[] = "params/batch_params.h";
constexpr char kRotary[] = "tile/rotary.cuh";

// The kind of run: Mutant::variant.
enum : int { kBySlots = 0, kByRequests = 1, kOneSlotTwice = 2, kInterleaved = 3 };

const std::set<std::string> kWrong = {"wrong answer"};
// The outcomes if memory of no request or of other requests may be accessed.
const std::set<std::string> kElsewhere = {"wrong answer", "uninitialised read", "out of bounds",
                                          "global memory race"};
const std::set<std::string> kEarly = {"wrong answer", "shared memory race", "uninitialised read"};

std::vector<Mutant> mutants() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      {"nothing is changed, by requests", {}, {"nothing"}, {}, kByRequests},
      {"two rows have a slot", {}, {"global memory race"}, {}, kOneSlotTwice},
      // Mistakes with the places of rows.
      {"-1 is a slot like others", {{kAppend, "if (slot == -1) return {};", ""}}, kWrong},
      {"the row in a page is the slot",
       {{kAppend, "const long long in_page = slot - page * rows;",
         "const long long in_page = slot;"}},
       kElsewhere},
      {"V lies as K does",
       {{kAppend, "page * params.v.page + in_page * params.v.row}",
         "page * params.k.page + in_page * params.k.row}"}},
       kElsewhere},
      {"a row more than there are",
       {{kAppend, "made.exists = row < counted(", "made.exists = row <= counted("}},
       kElsewhere},
      {"all rows of a request are its last key",
       {{kAppend, "int key = keys - (end - row);", "int key = keys - 1;"}},
       kElsewhere,
       {},
       kByRequests},
      {"nothing is changed of interleaved keys", {}, {"nothing"}, {}, kInterleaved},
      {"keys of other ranks are written",
       {{kAppend, "if (!params.interleave.has(key)) return made;", ""}},
       kElsewhere,
       {},
       kInterleaved},
      {"a rank's keys lie where they would among all",
       {{kAppend, "key = params.interleave.held(key);", ""}},
       kElsewhere,
       {},
       kInterleaved},
      {"a block has a key more",
       {{kParams, "return rest >= 0 && rest < block;", "return rest >= 0 && rest <= block;"}},
       kElsewhere,
       {},
       kInterleaved},
      {"the rank before has the key",
       {{kParams, "- quotient_of(key, period_factor, period_shift) * period - before;",
         "- quotient_of(key, period_factor, period_shift) * period;"}},
       kElsewhere,
       {},
       kInterleaved},
      {"the first request that begins before a row",
       {{kAppend, "first += (31 - __clz(static_cast<int>(before))) * step;",
         "first += (__ffs(static_cast<int>(before)) - 1) * step;"}},
       kElsewhere,
       {},
       kByRequests},
      {"V has the pages of K",
       {{kAppend, "find_place(params, params.v, params.places.v_pages,",
         "find_place(params, params.v, params.places.k_pages,"}},
       kElsewhere,
       {},
       kByRequests},
      // Mistakes in rotations.
      {"angles by the lower half of their turns",
       {{kRotary, "static_cast<unsigned>(turns >> 32)", "static_cast<unsigned>(turns)"}},
       kWrong},
      {"the sine of the other half turn",
       {{kRotary, "(quarter & 2u) != 0 ? -b : b", "(quarter & 2u) == 0 ? -b : b"}},
       kWrong},
      {"rotations of other pairs",
       {{kAppend, "rotations.load(by, unit * 8);", "rotations.load(by, unit * 4);"}},
       kWrong},
      {"the other half is the next piece",
       {{kAppend, "Chunk y(ptx::load_global_16(source + apart * 16));",
         "Chunk y(ptx::load_global_16(source + 16));"}},
       kElsewhere},
      {"positions of rows for those of keys",
       {{kAppend, "static_cast<long long>(k_position) + key", "static_cast<long long>(row)"}},
       kWrong,
       {},
       kByRequests},
      // Mistakes in waits.
      {"no barrier before a row's place is read",
       {{kAppend, "if (threadIdx.x == 0) found = here;\n  }\n  __syncthreads();",
         "if (threadIdx.x == 0) found = here;\n  }"}},
       kEarly},
      {"no barrier before rotations are read",
       {{kAppend, "sines[i] = rotation.sine;\n    }\n    __syncthreads();",
         "sines[i] = rotation.sine;\n    }"}},
       kEarly},
  };
}

constexpr std::int64_t kRows = 6, kPageRows = 4, kPages = 8;

AppendProblem problem_of(AppendPlace place, RotaryOrder order) {
  AppendProblem problem;
  problem.heads = 3;
  problem.kv_heads = 2;
  problem.dim_qk = 64;
  problem.dim_v = 32;
  problem.page_rows = kPageRows;
  problem.place = place;
  problem.rotary.order = order;
  problem.most.rows = kRows + 1;
  problem.most.requests = 4;
  problem.most.keys_of_one = 2 * kPageRows;
  return problem;
}

bool is_right(const Device& device, const AppendProblem& problem, const AppendCase& made,
              const AppendOperands& operands) {
  const AppendPlan plan = plan_append(device, problem);
  plan.clear_status(nullptr, operands.status);
  plan.run(nullptr, operands);
  return made.first_wrong().empty() && plan.status(operands.status).rule == AppendRule::kNone;
}

bool by_slots(const Device& device, bool one_twice) {
  const AppendProblem problem = problem_of(AppendPlace::kSlots, RotaryOrder::kHalves);
  const std::vector<std::int64_t> slots = {9, 30, -1, 4, 17, one_twice ? 30 : 11};
  std::vector<AppendedRow> rows;
  std::vector<std::int32_t> positions;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t slot = slots[static_cast<std::size_t>(row)];
    positions.push_back(static_cast<std::int32_t>(3001 * row + 2));
    AppendedRow made = {row, positions.back(), true, std::nullopt};
    if (slot >= 0) made.k = KeyRow{slot / kPageRows, slot % kPageRows};
    rows.push_back(made);
  }
  AppendCase made(device, problem, rows, kPages, {});
  AppendOperands operands = made.operands();
  operands.slots = made.put(slots);
  operands.positions_32 = made.put(positions);
  operands.rows = made.put(std::vector<std::int32_t>{kRows});
  operands.status = made.put(std::vector<std::uint32_t>{0});
  return is_right(device, problem, made, operands);
}

// Requests of 2, 0, 1 and 3 rows with 6, 3, 1 and 8 keys, on one rank or on one rank of several.
bool by_requests(const Device& device, const KeyInterleave& interleave) {
  AppendProblem problem = problem_of(AppendPlace::kRequests, RotaryOrder::kInterleaved);
  problem.interleave = interleave;
  const std::vector<std::int32_t> q_begin = {0, 2, 2, 3, 6}, k_length = {6, 3, 1, 8};
  const std::vector<std::int32_t> k_position = {0, 5, 900, 70};
  const std::vector<std::int32_t> k_ids = {5, 1, 0, 2, 7, -9, 3, 6},
                                  v_ids = {0, 7, 3, 1, 4, -9, 2, 5};
  std::vector<AppendedRow> rows;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::int32_t row = q_begin[r]; row < q_begin[r + 1]; ++row) {
      const std::int32_t key = k_length[r] - (q_begin[r + 1] - row);
      const std::int64_t number = held_keys(interleave, key);
      rows.push_back({row, k_position[r] + key, true, std::nullopt});
      if (held_keys(interleave, key + 1) == number) continue;
      const std::size_t entry = 2 * r + static_cast<std::size_t>(number / kPageRows);
      rows.back().k = KeyRow{k_ids[entry], number % kPageRows};
      rows.back().v = KeyRow{v_ids[entry], number % kPageRows};
    }
  }
  AppendCase made(device, problem, rows, kPages, {});
  AppendOperands operands = made.operands();
  operands.step.q_begin = made.put(q_begin);
  operands.step.k_length = made.put(k_length);
  operands.step.k_position = made.put(k_position);
  operands.step.k_pages = {made.put(k_ids), nullptr, 2};
  operands.step.v_pages = {made.put(v_ids), nullptr, 2};
  operands.status = made.put(std::vector<std::uint32_t>{0});
  return is_right(device, problem, made, operands);
}

TEST_CASE("mistakes in the kernel that appends are noticed") {
  if (!test::on_simulator() || !test::nvrtc()) return;
  test::MutantRun run;
  run.device = test::device_name();
  run.seeds = 2;
  for (const Mutant& mutant : test::to_try(mutants())) {
    CAPTURE(mutant.name);
    test::try_mutant(mutant, run, [&](const Device& device) {
      if (mutant.variant == kByRequests) return by_requests(device, {});
      if (mutant.variant == kInterleaved) {
        return by_requests(device, {.block = 1, .ranks = 3, .rank = 1});
      }
      return by_slots(device, mutant.variant == kOneSlotTwice);
    });
  }
}

}  // namespace
