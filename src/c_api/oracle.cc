// The C interface of states and the oracle. Each function converts its arguments and calls
// annulus/problem.h or annulus/oracle.h.
#include "annulus/c_tools.h"

#include <algorithm>
#include <optional>

#include "annulus/oracle.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_STATE_VERSION == kStateVersion);

constexpr StructName kHostState = {"annulus_host_state", "ANNULUS_HOST_STATE_INIT"};
constexpr StructName kHostInputs = {"annulus_host_inputs", "ANNULUS_HOST_INPUTS_INIT"};
constexpr StructName kReferenceOptions = {"annulus_reference_options",
                                          "ANNULUS_REFERENCE_OPTIONS_INIT"};
constexpr StructName kReferenceRows = {"annulus_reference_rows", "ANNULUS_REFERENCE_ROWS_INIT"};
constexpr StructName kHostResult = {"annulus_host_result", "ANNULUS_HOST_RESULT_INIT"};
constexpr StructName kTolerance = {"annulus_tolerance", "ANNULUS_TOLERANCE_INIT"};
constexpr StructName kComparison = {"annulus_comparison", "ANNULUS_COMPARISON_INIT"};

// ---- States

annulus_host_state read_state(const char* name, const annulus_host_state* given) {
  const annulus_host_state c =
      read_struct(kHostState, given, annulus_host_state ANNULUS_HOST_STATE_INIT);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
  if (c.rows < 0 || c.dim_v < 1 || c.rows > kMaxElements / c.dim_v) {
    base::fail(ErrorCode::kInvalidArgument,
               "state {} has {} rows of {} values; give 0 rows or more and 1 value or more, "
               "at most 2^48 together",
               name, c.rows, c.dim_v);
  }
  if (c.version != kStateVersion) {
    base::fail(ErrorCode::kInvalidArgument,
               "state {} has version {}; this library reads version {}", name, c.version,
               kStateVersion);
  }
  if (c.rows > 0) {
    check_pointer("acc of a state", c.acc);
    check_pointer("m of a state", c.m);
    check_pointer("l of a state", c.l);
  }
  return c;
}

HostState state_of(const char* name, const annulus_host_state* given) {
  const annulus_host_state c = read_state(name, given);
  HostState state;
  state.rows = c.rows;
  state.dim_v = c.dim_v;
  state.acc.assign(c.acc, c.acc + c.rows * c.dim_v);
  state.m.assign(c.m, c.m + c.rows);
  state.l.assign(c.l, c.l + c.rows);
  return state;
}

void write_state(const HostState& state, const annulus_host_state& into) {
  std::copy(state.acc.begin(), state.acc.end(), into.acc);
  std::copy(state.m.begin(), state.m.end(), into.m);
  std::copy(state.l.begin(), state.l.end(), into.l);
}

// ---- The oracle

// Converted inputs, and the state that they point to.
struct Inputs {
  std::optional<HostState> state;
  HostInputs inputs;
};

Inputs inputs_of(const annulus_host_inputs* given) {
  const annulus_host_inputs c =
      read_struct(kHostInputs, given, annulus_host_inputs ANNULUS_HOST_INPUTS_INIT);
  Inputs made;
  if (c.state_in != nullptr) made.state = state_of("state_in", c.state_in);
  made.inputs = {c.q,
                 c.k,
                 c.v,
                 strides_of(c.q_strides),
                 strides_of(c.k_strides),
                 strides_of(c.v_strides),
                 nullptr,
                 c.scale_q,
                 c.scale_k,
                 c.scale_v,
                 truth("broadcast_rows", c.broadcast_rows)};
  return made;
}

ReferenceOptions options_of(const annulus_reference_options* given) {
  ReferenceOptions options;
  if (given == nullptr) return options;
  const annulus_reference_options c = read_struct(
      kReferenceOptions, given, annulus_reference_options ANNULUS_REFERENCE_OPTIONS_INIT);
  constexpr std::int64_t kMaxThreads = 1024;
  if (c.threads < 0 || c.threads > kMaxThreads) {
    base::fail(ErrorCode::kInvalidArgument, "{} threads of the host; give 0 to {}", c.threads,
               kMaxThreads);
  }
  options.max_pairs = c.max_pairs;
  options.tile_rows = c.tile_rows;
  options.sampled_rows = c.sampled_rows;
  options.seed = c.seed;
  options.threads = static_cast<int>(c.threads);
  if (c.progress != nullptr) {
    options.progress = [call = c.progress, user = c.progress_user](double share) {
      call(user, share);
    };
  }
  return options;
}

struct ReferenceObject {
  Problem problem;
  Reference reference;
};
HandleTable<ReferenceObject>& references() {
  static auto* table = new HandleTable<ReferenceObject>("reference", 0xf1);
  return *table;
}
using ReferencePin = HandleTable<ReferenceObject>::Pin;

Comparison compared(const ReferenceObject& object, const annulus_host_result* given) {
  const annulus_host_result c =
      read_struct(kHostResult, given, annulus_host_result ANNULUS_HOST_RESULT_INIT);
  std::optional<HostState> state;
  if (c.state != nullptr) state = state_of("of the result", c.state);
  const HostResult result = {c.o, strides_of(c.o_strides), c.lse, state ? &*state : nullptr};
  if (c.excused == nullptr) return compare(object.problem, object.reference, result);
  return compare(object.problem, object.reference, result,
                 [excused = c.excused](std::int64_t row) { return excused[row] != 0; });
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_state_clear(const annulus_host_state* state) {
  return guarded([&] {
    const annulus_host_state into = read_state("to clear", state);
    write_state(HostState::empty(into.rows, into.dim_v), into);
  });
}

annulus_status annulus_state_merge(const annulus_host_state* a, const annulus_host_state* b,
                                   const annulus_host_state* into) {
  return guarded([&] {
    const annulus_host_state to = read_state("into", into);
    const HostState merged = merge(state_of("a", a), state_of("b", b));
    if (to.rows != merged.rows || to.dim_v != merged.dim_v) {
      base::fail(ErrorCode::kInvalidArgument,
                 "a state of {} rows of {} values does not fit one of {} rows of {}", merged.rows,
                 merged.dim_v, to.rows, to.dim_v);
    }
    write_state(merged, to);
  });
}

annulus_status annulus_state_finish(const annulus_host_state* state, int32_t lse_base, float* o,
                                    float* lse) {
  return guarded([&] {
    const HostState finished = state_of("to finish", state);
    if (lse_base != ANNULUS_LSE_NATURAL && lse_base != ANNULUS_LSE_TWO) {
      base::fail(ErrorCode::kInvalidArgument,
                 "lse_base is {}; give ANNULUS_LSE_NATURAL or ANNULUS_LSE_TWO", lse_base);
    }
    if (finished.rows == 0) return;
    check_pointer("o", o);
    check_pointer("lse", lse);
    const FinishedRows rows = finish(finished, static_cast<LseBase>(lse_base));
    std::copy(rows.o.begin(), rows.o.end(), o);
    std::copy(rows.lse.begin(), rows.lse.end(), lse);
  });
}

annulus_status annulus_reference_create(const annulus_problem* problem,
                                        const annulus_host_inputs* given,
                                        const annulus_reference_options* options,
                                        annulus_reference** to) {
  return guarded([&] {
    check_pointer("reference (where the handle goes)", to);
    auto object = std::make_unique<ReferenceObject>();
    object->problem = problem_of(problem);
    Inputs made = inputs_of(given);
    if (made.state) made.inputs.state_in = &*made.state;
    object->reference = reference(object->problem, made.inputs, options_of(options));
    give(to, references(), std::move(object));
  });
}

annulus_status annulus_reference_destroy(annulus_reference* handle) {
  return guarded([&] { references().erase(number(handle)); });
}

annulus_status annulus_reference_get(annulus_reference* handle, annulus_reference_rows* to) {
  return guarded([&] {
    const ReferencePin pin(references(), number(handle));
    const Reference& found = pin->reference;
    annulus_reference_rows c = ANNULUS_REFERENCE_ROWS_INIT;
    c.count = static_cast<std::int64_t>(found.rows.size());
    c.dim_v = found.dim_v;
    c.rows = found.rows.data();
    c.o = found.o.data();
    c.m = found.m.data();
    c.l = found.l.data();
    c.tainted = found.tainted.data();
    c.sampled = found.sampled() ? 1 : 0;
    write_struct(kReferenceRows, to, c);
  });
}

annulus_status annulus_tolerance_get(int32_t dtype, annulus_tolerance* to) {
  return guarded([&] {
    if (dtype != ANNULUS_FLOAT16 && dtype != ANNULUS_BFLOAT16 && dtype != ANNULUS_FLOAT8_E4M3) {
      base::fail(ErrorCode::kInvalidArgument, "dtype is {}; give one of annulus_dtype", dtype);
    }
    const Tolerance found = tolerance(static_cast<Dtype>(dtype));
    annulus_tolerance c = ANNULUS_TOLERANCE_INIT;
    c.row = found.row;
    c.frobenius = found.frobenius;
    c.lse = found.lse;
    write_struct(kTolerance, to, c);
  });
}

annulus_status annulus_reference_compare(annulus_reference* handle,
                                         const annulus_host_result* result,
                                         annulus_comparison* to) {
  return guarded([&] {
    const ReferencePin pin(references(), number(handle));
    check_output(kComparison, to);
    const Comparison found = compared(*pin, result);
    annulus_comparison c = ANNULUS_COMPARISON_INIT;
    c.error_row_max = found.error_row_max;
    c.error_o = found.error_o;
    c.error_lse = found.error_lse;
    c.checked_rows = found.checked_rows;
    c.tainted_rows = found.tainted_rows;
    c.wrong_rows = found.wrong_rows;
    c.within_tolerance = found.within_tolerance ? 1 : 0;
    found.first_wrong.copy(c.first_wrong, sizeof c.first_wrong - 1);
    write_struct(kComparison, to, c);
  });
}

annulus_status annulus_problem_reached_rows(const annulus_problem* problem,
                                            const annulus_host_inputs* given, int64_t tile_rows,
                                            int64_t tile_columns, uint8_t* reached) {
  return guarded([&] {
    const Problem made = problem_of(problem);
    validate(made);
    Inputs inputs = inputs_of(given);
    if (inputs.state) inputs.inputs.state_in = &*inputs.state;
    const std::vector<std::uint8_t> found =
        reached_rows(made, inputs.inputs, tile_rows, tile_columns);
    const std::int64_t rows = made.batch * made.heads * made.seq_q;
    if (rows == 0) return;
    check_pointer("reached", reached);
    if (found.empty()) {
      std::fill(reached, reached + rows, std::uint8_t{0});
    } else {
      std::copy(found.begin(), found.end(), reached);
    }
  });
}

}  // extern "C"
