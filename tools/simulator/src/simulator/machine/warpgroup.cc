#include "simulator/machine/warpgroup.h"

#include <algorithm>

#include "simulator/machine/cta.h"

namespace annulus::simulator {
void Warpgroup::reset() {
  queue.clear();
  first = 0;
  std::fill(std::begin(issued), std::end(issued), 0);
}

void MatrixWarp::reset(std::size_t count) {
  registers.assign(count, Register{});
  fences = 0;
  group = 1;
  last = 0;
  waited = 0;
}

void check_matrix_exit(const Warp& warp) {
  const MatrixWarp& matrix = warp.matrix;
  if (matrix.last <= matrix.waited) return;
  report_at(FaultKind::kUnwaited, -1,
            "a warp exits without waiting for the matrix products that it issued");
}

void check_products_issued(Warp& warp) {
  for (const Warpgroup& warpgroup : warp.cta->warpgroups) {
    for (const MatrixProduct& product : warpgroup.queue) {
      if (product.issued == Warpgroup::kAll) continue;
      warp.pc = product.pc;
      raise(FaultKind::kDivergentBarrier,
            fmt::format("only warps {:#06b} of a warpgroup issued this product; all four have to",
                        product.issued));
    }
  }
}

void touch_matrix_registers(Warp& warp, std::uint32_t pc) {
  MatrixWarp& matrix = warp.matrix;
  for (const std::uint32_t touch : warp.cta->program->touches[pc]) {
    MatrixWarp::Register& reg = matrix.registers[touch / 2];
    const bool write = (touch & 1) != 0;
    if (reg.result > matrix.waited) {
      report_at(FaultKind::kRegisterInFlight, -1,
                "{} of an accumulator of a product that has not been waited for",
                write ? "write" : "read");
    }
    if (reg.fragment > matrix.waited) {
      report_at(FaultKind::kRegisterInFlight, -1,
                "{} of a fragment of A of a product that has not been waited for",
                write ? "write" : "read");
    }
    reg.touched = matrix.fences;
    reg.written |= write;
  }
}

}  // namespace annulus::simulator
