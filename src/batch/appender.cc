#include "batch/appender.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>

#include "attention/kernels/kernel_source.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "batch/step_operands.h"

namespace annulus::batch {
namespace {

using attention::check_address;
using attention::check_unused;

constexpr std::int64_t kMaxRows = std::int64_t{1} << 27;  // the status has 28 bits for it
constexpr std::int64_t kMaxDim = 2 * kernels::kMaxRotaryPairs;
constexpr double kMaxFrequency = 4;

bool rotates(const AppendProblem& problem) { return problem.rotary.order != RotaryOrder::kNone; }

kernels::RowsParams rows_params(const void* data, const RowStrides& strides) {
  return {data, strides.row, strides.head};
}
kernels::PlacesParams places_params(void* data, const BatchStrides& strides, std::int64_t pages) {
  return {data, strides.page, strides.row, strides.head, page_count(pages), 0};
}

// Throws if both of two arrays are given, which hold the same numbers in 64 and in 32 bits, or if
// `needed` and neither is. Checks the alignment of the addresses too.
void check_either(const char* name, const void* wide, const void* narrow, bool needed) {
  if (wide != nullptr && narrow != nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "{} and {}_32 are both given; leave one null", name,
               name);
  }
  if (wide == nullptr && narrow == nullptr && needed) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} and {}_32 are both null; give the address of one in device memory", name, name);
  }
  check_optional(name, wide, 8);
  check_optional(name, narrow, 4);
}

void check_rotary(const AppendProblem& problem) {
  const Rotary& rotary = problem.rotary;
  const std::int64_t multiple = rotary.order == RotaryOrder::kHalves ? 16 : 8;
  attention::check_count("rotary.dims", rotary.dims, multiple, problem.dim_qk);
  if (rotary.dims % multiple != 0) {
    base::fail(ErrorCode::kUnsupported,
               "rotary.dims is {}; the order of pairs needs a multiple of {}", rotary.dims,
               multiple);
  }
  if (rotary.tables) {
    constexpr Dtype kTaken[] = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16};
    if (std::ranges::find(kTaken, *rotary.tables) == std::end(kTaken)) {
      base::fail(ErrorCode::kUnsupported, "tables of {} have no kernel; use fp32, fp16 or bf16",
                 to_string(*rotary.tables));
    }
    if (rotary.frequencies.empty()) return;
    base::fail(ErrorCode::kInvalidArgument,
               "rotary.frequencies and rotary.tables are both given; give one of them");
  }
  if (rotary.frequencies.empty()) {
    if (std::isfinite(rotary.base) && rotary.base >= 1) return;
    base::fail(ErrorCode::kInvalidArgument, "rotary.base is {}; give a number of 1 or more",
               rotary.base);
  }
  if (std::ssize(rotary.frequencies) != rotary.dims / 2) {
    base::fail(ErrorCode::kInvalidArgument,
               "rotary.frequencies has {} entries; {} elements that are rotated have {} pairs",
               rotary.frequencies.size(), rotary.dims, rotary.dims / 2);
  }
  for (const double frequency : rotary.frequencies) {
    if (frequency >= -kMaxFrequency && frequency <= kMaxFrequency) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "rotary.frequencies has {}; give radians for each position from {} to {}", frequency,
               -kMaxFrequency, kMaxFrequency);
  }
}

}  // namespace

AppendProblem with_defaults(AppendProblem problem) {
  if (rotates(problem) && problem.rotary.dims == 0) problem.rotary.dims = problem.dim_qk;
  return problem;
}

// Frequencies of at most one turn lose nothing: turns have 64 bits, and so has the mantissa of a
// long double on x86; on Arm it has more.
std::vector<std::uint64_t> turns_of(const Rotary& rotary) {
  const std::int64_t pairs = rotary.dims / 2;
  std::vector<std::uint64_t> turns;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const long double frequency =
        rotary.frequencies.empty()
            ? std::pow(static_cast<long double>(rotary.base),
                       -2.0L * static_cast<long double>(i) / static_cast<long double>(rotary.dims))
            : static_cast<long double>(rotary.frequencies[static_cast<std::size_t>(i)]);
    long double turn = frequency / (2 * std::numbers::pi_v<long double>);
    turn -= std::floor(turn);
    const long double units = std::round(std::ldexp(turn, 64));
    turns.push_back(units >= std::ldexp(1.0L, 64) ? 0 : static_cast<std::uint64_t>(units));
  }
  return turns;
}

jit::KernelSpec append_spec(const AppendProblem& problem, jit::Arch arch) {
  using jit::Constant;
  const auto& tables = problem.rotary.tables;
  std::string rotations = "tile::ComputedRotations";
  if (rotates(problem) && tables) {
    rotations = *tables == Dtype::kFloat32
                    ? "tile::Float32Rotations"
                    : fmt::format("tile::Rotations16<{}>", attention::element_of(*tables));
  }
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {Constant::type("Element", attention::element_of(problem.dtype)),
                     Constant::type("Rotations", rotations),
                     Constant::integer("kRotary", static_cast<int>(problem.rotary.order)),
                     Constant::boolean("kBySlots", problem.place == AppendPlace::kSlots),
                     Constant::boolean("kInterleaved", problem.interleave.ranks > 1)};
  return {.family = "append_rows",
          .arch = arch,
          .file = "kernels/batch/append_rows.cu",
          .entry = "append_rows",
          .structs = {std::move(shape)}};
}

Appender::Appender(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
                   const AppendProblem& problem)
    : context_(context),
      problem_(with_defaults(problem)),
      spec_(append_spec(problem_, arch)),
      kernel_(kernels.get(spec_)) {
  if (rotates(problem_) && !problem_.rotary.tables) {
    turns_ = device::upload(context, std::span<const std::uint64_t>(turns_of(problem_.rotary)),
                            device::MemoryUse::kTables);
    params_.turns =
        reinterpret_cast<const unsigned long long*>(static_cast<std::uintptr_t>(turns_.address()));
  }
  params_.max_rows = static_cast<int>(problem_.most.rows);
  params_.max_requests = static_cast<int>(problem_.most.requests);
  params_.keys_of_one = static_cast<int>(problem_.most.keys_of_one);
  params_.page_rows = static_cast<int>(problem_.page_rows);
  params_.heads = static_cast<int>(problem_.heads);
  params_.kv_heads = static_cast<int>(problem_.kv_heads);
  params_.chunks_qk = static_cast<int>(problem_.dim_qk / 8);
  params_.chunks_v = static_cast<int>(problem_.dim_v / 8);
  params_.pairs = static_cast<int>(problem_.rotary.dims / 2);
  params_.interleave = interleave_of(problem_.interleave);
}

void Appender::check_places(const AppendOperands& operands) const {
  if (problem_.place == AppendPlace::kSlots) {
    check_either("slots", operands.slots, operands.slots_32, true);
    check_optional("rows", operands.rows, 4);
    check_unused("step.q_begin", operands.step.q_begin, "places come from slots (place)");
    return;
  }
  constexpr const char* kReason = "places come from requests (place)";
  check_unused("slots", operands.slots, kReason);
  check_unused("slots_32", operands.slots_32, kReason);
  check_unused("rows", operands.rows, kReason);
  check_metadata(operands.step, problem_.page_rows);
}

void Appender::check_rotation(const AppendOperands& operands) const {
  if (!rotates(problem_)) {
    constexpr const char* kReason = "nothing is rotated (rotary.order)";
    check_unused("positions", operands.positions, kReason);
    check_unused("positions_32", operands.positions_32, kReason);
  } else {
    check_either("positions", operands.positions, operands.positions_32,
                 problem_.place == AppendPlace::kSlots);
  }
  if (!rotates(problem_) || !problem_.rotary.tables) {
    constexpr const char* kReason = "angles do not come from tables (rotary.tables)";
    check_unused("cosines", operands.cosines, kReason);
    check_unused("sines", operands.sines, kReason);
    return;
  }
  const std::size_t bytes = size_in_bytes(*problem_.rotary.tables);
  check_address("cosines", operands.cosines, bytes);
  check_address("sines", operands.sines, bytes);
  attention::check_count("table_rows", operands.table_rows, 1, kMaxPosition);
  attention::check_count("table_stride", operands.table_stride,
                         operands.table_rows == 1 ? 0 : problem_.rotary.dims / 2, kMaxPosition);
}

void Appender::check(const AppendOperands& operands) const {
  check_rows("new_k", operands.new_k, operands.new_k_strides);
  check_rows("new_v", operands.new_v, operands.new_v_strides);
  const bool takes_q = rotates(problem_) && problem_.heads > 0;
  if (takes_q) {
    check_rows("Q", operands.q, operands.q_strides);
    check_rows("rotated_q", operands.rotated_q, operands.rotated_q_strides);
    check_distinct("rotated_q", operands.rotated_q_strides, certain_rows(problem_.most.rows),
                   problem_.heads, problem_.dim_qk);
    const bool same_strides = operands.q_strides.row == operands.rotated_q_strides.row &&
                              operands.q_strides.head == operands.rotated_q_strides.head;
    if (operands.q == operands.rotated_q && !same_strides) {
      base::fail(ErrorCode::kInvalidArgument,
                 "rotated_q is Q's memory with other strides, so its rows would overwrite "
                 "other rows of Q; use the same strides, or other memory");
    }
  } else {
    constexpr const char* kReason = "no Q is rotated (heads, rotary.order)";
    check_unused("Q", operands.q, kReason);
    check_unused("rotated_q", operands.rotated_q, kReason);
  }
  check_address("K", operands.k, 16);
  check_address("V", operands.v, 16);
  const bool one_row = problem_.page_rows == 1;
  check_keys("K", operands.k_strides, operands.k_pages, one_row);
  check_keys("V", operands.v_strides, operands.v_pages, one_row);
  // K and V are written too. Pages may overlap, because page tables name the pages that are used.
  const auto check_page = [&](const char* name, const BatchStrides& strides, std::int64_t pages,
                              std::int64_t dim) {
    const std::int64_t pool = pages > 0 ? certain_rows(pages) : kSomeRows;
    const std::int64_t rows = problem_.page_rows > 0 ? problem_.page_rows : pool;
    check_distinct(name, {.row = strides.row, .head = strides.head}, rows, problem_.kv_heads, dim);
  };
  check_page("K", operands.k_strides, operands.k_pages, problem_.dim_qk);
  check_page("V", operands.v_strides, operands.v_pages, problem_.dim_v);
  check_places(operands);
  check_rotation(operands);
  check_optional("the status", operands.status, 4);

  enum { kApart, kQuery };
  const std::array<attention::Place, 14> places = {{
      {"Q", operands.q, false, kQuery},
      {"rotated_q", operands.rotated_q, true, kQuery},
      {"new_k", operands.new_k, false, kApart},
      {"new_v", operands.new_v, false, kApart},
      {"K", operands.k, true, kApart},
      {"V", operands.v, true, kApart},
      {"slots", operands.slots, false, kApart},
      {"slots_32", operands.slots_32, false, kApart},
      {"positions", operands.positions, false, kApart},
      {"positions_32", operands.positions_32, false, kApart},
      {"cosines", operands.cosines, false, kApart},
      {"sines", operands.sines, false, kApart},
      {"rows", operands.rows, false, kApart},
      {"the status", operands.status, true, kApart},
  }};
  std::array<attention::Place, 14> used;
  std::size_t count = 0;
  for (const attention::Place& place : places) {
    if (place.data != nullptr) used[count++] = place;
  }
  attention::check_overlaps(std::span<const attention::Place>(used.data(), count));
}

void Appender::run(device::LaunchSink& to, const AppendOperands& operands) const {
  check(operands);
  kernels::AppendParams params = params_;
  params.q = rows_params(operands.q, operands.q_strides);
  params.new_k = rows_params(operands.new_k, operands.new_k_strides);
  params.new_v = rows_params(operands.new_v, operands.new_v_strides);
  params.rotated_q = places_params(
      operands.rotated_q, {0, operands.rotated_q_strides.row, operands.rotated_q_strides.head}, 0);
  params.k = places_params(operands.k, operands.k_strides, operands.k_pages);
  params.v = places_params(operands.v, operands.v_strides, operands.v_pages);
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  params.slots = reinterpret_cast<const long long*>(operands.slots);
  params.slots_32 = operands.slots_32;
  params.rows = operands.rows;
  params.q_begin = operands.step.q_begin;
  params.k_length = operands.step.k_length;
  params.requests = operands.step.requests;
  params.k_position = operands.step.k_position;
  params.places = places_of(operands.step);
  params.positions = reinterpret_cast<const long long*>(operands.positions);
  params.positions_32 = operands.positions_32;
  params.cosines = operands.cosines;
  params.sines = operands.sines;
  params.table_row = operands.table_stride;
  params.table_rows = static_cast<int>(operands.table_rows);
  params.status = operands.status;
  to.launch(kernel_.kernel->function, {static_cast<unsigned>(problem_.most.rows)},
            {kernels::kAppendThreads}, 0, params);
}

void Appender::clear_status(device::LaunchSink& to, std::uint32_t* status) const {
  check_address("the status", status, 4);
  to.fill(*context_, status, kernels::kNothingWrong, 1);
}

AppendStatus Appender::status(const std::uint32_t* status) const {
  check_address("the status", status, 4);
  std::uint32_t first = 0;
  device::copy_to_host(*context_, &first, reinterpret_cast<std::uintptr_t>(status), sizeof(first));
  if (first == kernels::kNothingWrong) return {};
  return {static_cast<AppendRule>(first % 16), static_cast<std::int64_t>(first / 16)};
}

}  // namespace annulus::batch

namespace annulus::inline v0 {

void validate(const AppendProblem& given) {
  using attention::check_count;
  const AppendProblem problem = batch::with_defaults(given);
  check_count("heads", problem.heads, 0, kMaxHeads);
  check_count("kv_heads", problem.kv_heads, 1, kMaxHeads);
  batch::check_row_dim("dim_qk", problem.dim_qk, batch::kMaxDim);
  batch::check_row_dim("dim_v", problem.dim_v, batch::kMaxDim);
  if (problem.dtype != Dtype::kFloat16 && problem.dtype != Dtype::kBfloat16) {
    base::fail(ErrorCode::kUnsupported,
               "{} rows have no kernel that appends them; convert to fp16 or bf16",
               to_string(problem.dtype));
  }
  check_count("page_rows", problem.page_rows, 0, kMaxPosition);
  check_count("most.rows", problem.most.rows, 1, batch::kMaxRows);
  const int place = static_cast<int>(problem.place);
  check_count("place", place, static_cast<int>(AppendPlace::kSlots),
              static_cast<int>(AppendPlace::kRequests));
  if (problem.place == AppendPlace::kRequests) {
    check_count("most.requests", problem.most.requests, 1, batch::kMaxRequests);
    check_count("most.keys_of_one", problem.most.keys_of_one, 1, kMaxPosition);
  }
  batch::check_interleave(problem.interleave);
  if (problem.interleave.ranks > 1 && problem.place == AppendPlace::kSlots) {
    base::fail(ErrorCode::kInvalidArgument,
               "interleave.ranks is {}, but slots give the places of rows and leave rows out; give "
               "the rows of other ranks slot -1, or take places from requests (place)",
               problem.interleave.ranks);
  }
  check_count("rotary.order", static_cast<int>(problem.rotary.order), 0,
              static_cast<int>(RotaryOrder::kHalves));
  if (problem.rotary.order != RotaryOrder::kNone) batch::check_rotary(problem);
}

const char* to_string(AppendRule rule) {
  switch (rule) {
    case AppendRule::kNone:
      return "nothing";
    case AppendRule::kRows:
      return "more rows than planned, or a negative number";
    case AppendRule::kRequests:
      return "more requests than planned, or rows that descend or end beyond the bound";
    case AppendRule::kSlot:
      return "a slot that does not exist";
    case AppendRule::kKey:
      return "no key, or a wrong number of keys";
    case AppendRule::kEntry:
      return "a key beyond its pages, or a negative begin";
    case AppendRule::kPage:
      return "a page number that does not exist";
    case AppendRule::kPosition:
      return "a position beyond 2^30 or the tables";
  }
  return "an unknown rule";
}

}  // namespace annulus::inline v0
