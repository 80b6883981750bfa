// Calls of annulus/c_tools.h: states, comparisons and tolerances.

#include <cmath>
#include <limits>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

namespace {

// A state in host memory with a few small numbers, whose sums are exact.
struct HostState {
  static constexpr int kRows = 4, kDim = 3;
  float acc[kRows * kDim] = {}, m[kRows] = {}, l[kRows] = {};
  Sized<annulus_host_state> state;

  explicit HostState(Bytes& bytes) : state(ANNULUS_HOST_STATE_INIT, bytes) {
    for (int row = 0; row < kRows; ++row) {
      l[row] = static_cast<float>(bytes.below(4));
      m[row] = l[row] == 0 ? -std::numeric_limits<float>::infinity()
                           : static_cast<float>(bytes.between(-3, 3));
      for (int i = 0; i < kDim; ++i) acc[row * kDim + i] = l[row] * static_cast<float>(i);
    }
    state->rows = bytes.below(16) == 0 ? bytes.between(-1, kRows - 1) : kRows;
    state->dim_v = bytes.below(16) == 0 ? bytes.between(-1, kDim - 1) : kDim;
    if (bytes.below(24) == 0) state->version = bytes.number();
  }
  // Call it only when the object no longer moves.
  annulus_host_state* get(Bytes& bytes) {
    state->acc = bytes.below(24) == 0 ? nullptr : acc;
    state->m = bytes.below(24) == 0 ? nullptr : m;
    state->l = bytes.below(24) == 0 ? nullptr : l;
    return state.get();
  }
};

}  // namespace

void Program::call_states() {
  constexpr int kRows = HostState::kRows, kDim = HostState::kDim;
  switch (bytes_.below(6)) {
    case 0: {
      HostState state(bytes_);
      annulus_host_state* const given = state.get(bytes_);
      if (!returned(annulus_state_clear(given), "annulus_state_clear")) return;
      for (std::int64_t row = 0; row < given->rows; ++row) {
        if (state.l[row] != 0 || !std::isinf(state.m[row])) wrong("row {} is not clear", row);
      }
      return;
    }
    case 1: {
      HostState a(bytes_), none(bytes_), into(bytes_);
      annulus_host_state* const first = a.get(bytes_);
      annulus_host_state* const second = none.get(bytes_);
      annulus_host_state* const to = bytes_.below(3) == 0 ? first : into.get(bytes_);
      const bool clear = bytes_.below(2) == 0;
      if (clear && annulus_state_clear(second) != ANNULUS_OK) return;
      const HostState before = a;
      if (!returned(annulus_state_merge(first, second, to), "annulus_state_merge") || !clear)
        return;
      for (std::int64_t row = 0; row < to->rows; ++row) {
        if (to->l[row] != before.l[row] || to->m[row] != before.m[row]) {
          wrong("merging nothing changed row {}", row);
        }
        for (std::int64_t i = 0; i < to->dim_v; ++i) {
          const std::int64_t at = row * to->dim_v + i;
          if (before.l[row] > 0 && to->acc[at] != before.acc[at])
            wrong("merging nothing changed acc of row {}", row);
        }
      }
      return;
    }
    case 2: {
      HostState state(bytes_);
      float o[kRows * kDim], lse[kRows];
      annulus_host_state* const given = state.get(bytes_);
      const std::int32_t base = tiny(3);
      if (!returned(annulus_state_finish(given, base, bytes_.below(24) == 0 ? nullptr : o,
                                         bytes_.below(24) == 0 ? nullptr : lse),
                    "annulus_state_finish")) {
        return;
      }
      for (std::int64_t row = 0; row < given->rows; ++row) {
        if ((state.l[row] == 0) != std::isinf(lse[row])) wrong("the LSE of row {}", row);
      }
      return;
    }
    case 3: {
      Sized<annulus_tolerance> tolerance(ANNULUS_TOLERANCE_INIT, bytes_);
      returned(annulus_tolerance_get(tiny(5), tolerance.get()), "annulus_tolerance_get");
      return;
    }
    case 4: {  // the result has the sizes of the problem of the reference
      static const std::uint16_t zeros[kSide * kSide] = {};
      static const std::uint8_t excused[kSide] = {0, 1};
      static const float lse[kSide] = {};
      annulus_reference* reference = pick<annulus_reference>(Kind::kReference);
      HostState carried(bytes_);
      Sized<annulus_host_result> result(ANNULUS_HOST_RESULT_INIT, bytes_);
      result->o = bytes_.below(16) == 0 ? nullptr : zeros;
      result->o_strides = {64 * 64, 64 * 64, bytes_.below(16) == 0 ? bytes_.below(65) : 64};
      result->lse = bytes_.below(4) == 0 ? lse : nullptr;
      result->state = bytes_.below(8) == 0 ? carried.get(bytes_) : nullptr;
      result->excused = bytes_.below(2) == 0 ? nullptr : excused;
      Sized<annulus_comparison> comparison(ANNULUS_COMPARISON_INIT, bytes_);
      returned(annulus_reference_compare(reference, result.get(), comparison.get()),
               "annulus_reference_compare");
      return;
    }
    default: {
      alignas(16) static std::uint16_t operand[kSide * kSide] = {};
      std::uint8_t reached[kSide];
      operand[5] = bytes_.below(2) == 0 ? 0x7f80 : 0;  // an infinity in bf16
      auto described = problem(true);
      if (bytes_.below(4) == 0) described->pattern = pattern();
      Sized<annulus_host_inputs> inputs(ANNULUS_HOST_INPUTS_INIT, bytes_);
      inputs->q = inputs->k = operand;
      inputs->v = bytes_.below(8) == 0 ? nullptr : operand;
      inputs->q_strides = inputs->k_strides = inputs->v_strides = {64 * 64, 64 * 64, 64};
      const bool whole = bytes_.below(2) == 0;  // a tile size that kernels have
      const std::int64_t rows = whole ? 64 : small(64), columns = whole ? 64 : small(64);
      returned(annulus_problem_reached_rows(described.get(), inputs.get(), rows, columns, reached),
               "annulus_problem_reached_rows");
    }
  }
}

}  // namespace annulus::fuzz
