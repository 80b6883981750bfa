#include "sim/warpgroup.h"

#include <algorithm>
#include <bit>

#include "sim/cluster.h"
#include "sim/context.h"
#include "sim/ops/wgmma.h"

namespace annulus::sim {
namespace {

MatrixProduct& product_at(Warpgroup& warpgroup, std::uint64_t number) {
  return warpgroup.queue[static_cast<std::size_t>(number - warpgroup.first)];
}

void drop_computed(Warpgroup& warpgroup) {
  while (!warpgroup.queue.empty() && warpgroup.queue.front().computed == Warpgroup::kAll) {
    warpgroup.queue.pop_front();
    ++warpgroup.first;
  }
}

// Computes, for these warps, their products up to and with `number`, oldest first.
void compute_through(Context& context, int group, std::uint32_t warps, std::uint64_t number) {
  Warpgroup& warpgroup = context.warpgroups[static_cast<std::size_t>(group)];
  for (std::uint64_t i = warpgroup.first; i <= number; ++i) {
    MatrixProduct& product = product_at(warpgroup, i);
    const std::uint32_t now = warps & product.issued & ~product.computed;
    if (now == 0) continue;
    compute(context, group, product, now);
    product.computed |= now;
  }
  drop_computed(warpgroup);
}

void check_result_register(const Context& context, const MatrixProduct& product,
                           std::uint32_t number) {
  MatrixWarp& matrix = context.warp->matrix;
  MatrixWarp::Register& reg = matrix.registers[number];
  const std::uint32_t shape = product.form->shape();
  if (reg.fragment > matrix.waited) {
    raise(FaultKind::kRegisterInFlight,
          "an accumulator is a fragment of A of a product that has not been waited for");
  }
  if (reg.result > matrix.waited && reg.shape != shape) {
    raise(FaultKind::kRegisterInFlight,
          "an accumulator belongs to a product of another shape that has not been waited for");
  }
  if (reg.touched == matrix.fences) {
    raise(FaultKind::kMissingFence, reg.written
                                        ? "an accumulator was touched since the last wgmma.fence"
                                        : "no wgmma.fence since the kernel started");
  }
  if (reg.shaped == matrix.fences && reg.shape != shape && reg.shape != 0) {
    raise(FaultKind::kMissingFence,
          "an accumulator was used with another shape since the last wgmma.fence");
  }
  if (product.accumulate && !reg.written) {
    raise(FaultKind::kUninitialized, "an accumulator is added to that nothing wrote");
  }
}

void check_fragment_register(const Context& context, std::uint32_t number) {
  const MatrixWarp& matrix = context.warp->matrix;
  const MatrixWarp::Register& reg = matrix.registers[number];
  if (reg.result > matrix.waited) {
    raise(FaultKind::kRegisterInFlight,
          "a fragment of A is an accumulator of a product that has not been waited for");
  }
  if (reg.touched == matrix.fences) {
    raise(FaultKind::kMissingFence,
          "a register with a fragment of A was touched since the last wgmma.fence");
  }
}

void own_registers(Context& context, const MatrixProduct& product) {
  MatrixWarp& matrix = context.warp->matrix;
  for (const std::uint32_t number : product.form->d_registers) {
    check_result_register(context, product, number);
  }
  for (const std::uint32_t number : product.form->a_registers) {
    check_fragment_register(context, number);
  }
  for (const std::uint32_t number : product.form->d_registers) {
    MatrixWarp::Register& reg = matrix.registers[number];
    reg.result = matrix.group;
    reg.shape = product.form->shape();
    reg.shaped = matrix.fences;
    reg.written = true;
  }
  for (const std::uint32_t number : product.form->a_registers) {
    matrix.registers[number].fragment = matrix.group;
  }
}

// What every warp of the warpgroup has to say alike.
void check_alike(const MatrixProduct& first, const MatrixProduct& second) {
  if (first.pc != second.pc) {
    raise(FaultKind::kInvalidOperand,
          "the warps of the warpgroup issue different instructions as their next product");
  }
  if (first.a_descriptor != second.a_descriptor || first.b_descriptor != second.b_descriptor ||
      first.accumulate != second.accumulate) {
    raise(FaultKind::kInvalidOperand,
          fmt::format("the warps of the warpgroup disagree on a descriptor or on scale-d "
                      "({:#x}, {:#x}, {} and {:#x}, {:#x}, {})",
                      first.a_descriptor, first.b_descriptor, first.accumulate, second.a_descriptor,
                      second.b_descriptor, second.accumulate));
  }
}

}  // namespace

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

void issue_product(Context& context, MatrixProduct fresh) {
  const int group = context.warp->index / 4;
  const auto warp = static_cast<std::size_t>(context.warp->index % 4);
  if (static_cast<std::size_t>(group) >= context.warpgroups.size()) {
    raise(FaultKind::kInvalidOperand,
          "wgmma by a warp whose warpgroup is not whole: the CTA has too few warps");
  }
  Warpgroup& warpgroup = context.warpgroups[static_cast<std::size_t>(group)];
  if (context.checked) own_registers(context, fresh);
  const std::uint64_t number = warpgroup.issued[warp]++;
  if (number - warpgroup.first == warpgroup.queue.size()) {
    locate_operands(context, fresh);
    warpgroup.queue.push_back(std::move(fresh));
  } else {
    check_alike(product_at(warpgroup, number), fresh);
    std::copy_n(&fresh.a[warp][0][0], 4 * kLanes, &product_at(warpgroup, number).a[warp][0][0]);
  }
  MatrixProduct& product = product_at(warpgroup, number);
  product.issued |= 1u << warp;
  product.group[warp] = context.warp->matrix.group;
  context.warp->matrix.last = context.warp->matrix.group;
  const bool all = product.issued == Warpgroup::kAll;
  // By itself a warp may be done with its rows of A before the others have issued the product.
  if (context.by_warp) begin_rows(context, group, product, static_cast<std::uint32_t>(warp));
  if (all) {
    for (std::uint32_t i = 0; i < 4 && !context.by_warp; ++i) {
      begin_rows(context, group, product, i);
    }
    begin_product(context, group, product);
    ++context.cluster->events;
    context.wake({Wait::kMatrix, static_cast<std::uint32_t>(group)});
  }
  const bool early = context.landing == 1 || (context.landing == 0 && (context.dice.next() & 1));
  if (!early || (!all && !context.by_warp)) return;
  compute_through(context, group, context.by_warp ? 1u << warp : Warpgroup::kAll, number);
}

bool wait_products(Context& context, std::uint32_t left) {
  MatrixWarp& matrix = context.warp->matrix;
  const int group = context.warp->index / 4;
  const auto warp = static_cast<std::size_t>(context.warp->index % 4);
  if (static_cast<std::size_t>(group) >= context.warpgroups.size()) return true;
  Warpgroup& warpgroup = context.warpgroups[static_cast<std::size_t>(group)];
  const std::uint32_t closed = matrix.group - 1;
  const std::uint32_t over = std::max(matrix.waited, closed > left ? closed - left : 0);
  // The last product that has to be over.
  std::uint64_t end = warpgroup.first;
  for (std::uint64_t i = warpgroup.first; i < warpgroup.issued[warp]; ++i) {
    const MatrixProduct& product = product_at(warpgroup, i);
    if (product.group[warp] > over) break;
    if (!context.by_warp && product.issued != Warpgroup::kAll) return false;
    end = i + 1;
  }
  if (end > warpgroup.first) {
    compute_through(context, group, context.by_warp ? 1u << warp : Warpgroup::kAll, end - 1);
  }
  matrix.waited = over;
  if (context.checked) {
    ClusterClocks& clocks = context.cluster->clocks;
    clocks.wait(context.agent(), clocks.matrix_unit(context.agent()), over + 1);
  }
  return true;
}

void compute_some(Context& context) {
  for (std::size_t group = 0; group < context.warpgroups.size(); ++group) {
    const Warpgroup& warpgroup = context.warpgroups[group];
    if (warpgroup.queue.empty() || (context.dice.next() & 3) != 0) continue;
    const std::uint64_t number =
        warpgroup.first + context.dice.below(static_cast<std::uint32_t>(warpgroup.queue.size()));
    std::uint32_t warps = Warpgroup::kAll;
    std::uint64_t end = number;
    if (context.by_warp) {
      warps = static_cast<std::uint32_t>(context.dice.next() & Warpgroup::kAll);
    } else {
      // Only what all four warps have issued may happen.
      while (end > warpgroup.first &&
             warpgroup.queue[static_cast<std::size_t>(end - warpgroup.first)].issued !=
                 Warpgroup::kAll) {
        --end;
      }
      if (warpgroup.queue[static_cast<std::size_t>(end - warpgroup.first)].issued !=
          Warpgroup::kAll) {
        continue;
      }
    }
    compute_through(context, static_cast<int>(group), warps, end);
  }
}

void check_matrix_exit(const Context& context) {
  const MatrixWarp& matrix = context.warp->matrix;
  if (matrix.last <= matrix.waited) return;
  raise(FaultKind::kUnwaited,
        "a warp exits while matrix products that it issued have not been waited for");
}

void check_products_issued(Context& context) {
  for (const Warpgroup& warpgroup : context.warpgroups) {
    for (const MatrixProduct& product : warpgroup.queue) {
      if (product.issued == Warpgroup::kAll) continue;
      context.pc = product.pc;
      raise(FaultKind::kDivergentBarrier,
            fmt::format("warps {:#06b} of a warpgroup issued this product, the others never did",
                        product.issued));
    }
  }
}

void touch_matrix_registers(Context& context, std::uint32_t pc) {
  MatrixWarp& matrix = context.warp->matrix;
  for (const std::uint32_t touch : context.program->touches[pc]) {
    MatrixWarp::Register& reg = matrix.registers[touch / 2];
    const bool write = (touch & 1) != 0;
    if (reg.result > matrix.waited) {
      raise_at(FaultKind::kRegisterInFlight, -1,
               "{} of an accumulator of a product that has not been waited for",
               write ? "write" : "read");
    }
    if (reg.fragment > matrix.waited) {
      raise_at(FaultKind::kRegisterInFlight, -1,
               "{} of a fragment of A of a product that has not been waited for",
               write ? "write" : "read");
    }
    reg.touched = matrix.fences;
    reg.written |= write;
  }
}

}  // namespace annulus::sim
