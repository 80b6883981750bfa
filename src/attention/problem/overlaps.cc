// Which tensors of a call may share memory: a tensor that is written must not begin where another
// tensor of the call begins. Exceptions are O in the place of Q, and state_out in the place of
// state_in. Only the first addresses are compared.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/problem/operands.h"
#include "base/fail.h"

namespace annulus::attention {

void check_overlaps(std::span<const Place> places) {
  for (const Place& place : places) {
    if (!place.written) continue;
    for (const Place& other : places) {
      if (&other == &place || other.data != place.data) continue;
      if (place.shared != 0 && place.shared == other.shared) continue;
      base::fail(ErrorCode::kInvalidArgument,
                 "{} and {} are both at {:#x}; give the tensor that is written memory of its own",
                 place.name, other.name, reinterpret_cast<std::uintptr_t>(place.data));
    }
  }
}

// Collects the tensors that this problem reads or writes, and compares each tensor that is written
// with all others. Tensors that are only read may share memory.
void check_overlaps(const Problem& problem, const Operands& operands) {
  enum { kApart, kQuery, kAcc, kMaximum, kSum };
  std::array<Place, 14> places;
  std::size_t count = 0;
  const auto add = [&](bool used, const char* name, const void* data, bool written, int shared) {
    if (used && data != nullptr) places[count++] = {name, data, written, shared};
  };
  const bool keys = problem.seq_k > 0;
  add(true, "Q", operands.q, false, kQuery);
  add(keys, "K", operands.k, false, kApart);
  add(keys, "V", operands.v, false, kApart);
  add(true, "scale_q", operands.scale_q, false, kApart);
  add(keys, "scale_k", operands.scale_k, false, kApart);
  add(keys, "scale_v", operands.scale_v, false, kApart);
  const StatePointers& in = operands.state_in;
  add(problem.carry_in, "state_in.acc", in.acc, false, kAcc);
  add(problem.carry_in, "state_in.m", in.m, false, kMaximum);
  add(problem.carry_in, "state_in.l", in.l, false, kSum);
  add(!problem.carry_out, "O", operands.o, true, kQuery);
  add(problem.want_lse, "LSE", operands.lse, true, kApart);
  const StatePointers& out = operands.state_out;
  add(problem.carry_out, "state_out.acc", out.acc, true, kAcc);
  add(problem.carry_out, "state_out.m", out.m, true, kMaximum);
  add(problem.carry_out, "state_out.l", out.l, true, kSum);
  check_overlaps(std::span<const Place>(places.data(), count));
}

}  // namespace annulus::attention
