// The queue of products of a warpgroup. Each of the four warps issues a product. It is computed at
// some moment after that, and a warp waits for its group.

#include <algorithm>
#include <utility>

#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"
#include "simulator/ops/wgmma.h"

namespace annulus::simulator {
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

// Computes the products of these warps up to and including `number`, the oldest first.
void compute_through(Cta& cta, int group, std::uint32_t warps, std::uint64_t number) {
  Warpgroup& warpgroup = cta.warpgroups[static_cast<std::size_t>(group)];
  for (std::uint64_t i = warpgroup.first; i <= number; ++i) {
    MatrixProduct& product = product_at(warpgroup, i);
    const std::uint32_t now = warps & product.issued & ~product.computed;
    if (now == 0) continue;
    compute(cta, group, product, now);
    product.computed |= now;
  }
  drop_computed(warpgroup);
}

// `touched` and the count of fences are 0 at first, so the first product needs a fence too.
void check_result_register(Warp& warp, const MatrixProduct& product, std::uint32_t number) {
  MatrixWarp& matrix = warp.matrix;
  MatrixWarp::Register& reg = matrix.registers[number];
  const std::uint32_t shape = product.form->shape();
  if (reg.fragment > matrix.waited) {
    report_at(FaultKind::kRegisterInFlight, -1,
              "an accumulator is a fragment of A of a product that has not been waited for");
  }
  if (reg.result > matrix.waited && reg.shape != shape) {
    report_at(FaultKind::kRegisterInFlight, -1,
              "an accumulator belongs to a product of another shape that has not been waited for");
  }
  if (reg.touched == matrix.fences) {
    report_at(FaultKind::kMissingFence, -1, "{}",
              reg.written ? "an accumulator was accessed since the last wgmma.fence"
                          : "no wgmma.fence since the kernel started");
  }
  if (reg.shaped == matrix.fences && reg.shape != shape && reg.shape != 0) {
    report_at(FaultKind::kMissingFence, -1,
              "an accumulator was used with another shape since the last wgmma.fence");
  }
  if (product.accumulate && !reg.written) {
    report_at(FaultKind::kUninitialized, -1,
              "the product adds to an accumulator that was never written");
  }
}

void check_fragment_register(const Warp& warp, std::uint32_t number) {
  const MatrixWarp& matrix = warp.matrix;
  const MatrixWarp::Register& reg = matrix.registers[number];
  if (reg.result > matrix.waited) {
    report_at(FaultKind::kRegisterInFlight, -1,
              "a fragment of A is an accumulator of a product that has not been waited for");
  }
  if (reg.touched == matrix.fences) {
    report_at(FaultKind::kMissingFence, -1,
              "a register with a fragment of A was accessed since the last wgmma.fence");
  }
}

// From the issue on, the registers belong to the product's group until a wait covers it. All
// registers are checked before any is marked. So if a product names a register twice, only earlier
// products matter for the check.
void own_registers(Warp& warp, const MatrixProduct& product) {
  MatrixWarp& matrix = warp.matrix;
  for (const std::uint32_t number : product.form->d_registers) {
    check_result_register(warp, product, number);
  }
  for (const std::uint32_t number : product.form->a_registers) {
    check_fragment_register(warp, number);
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

// Throws Fault if two warps of a warpgroup do not issue the same product.
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

// The first warp that issues a product adds it to the queue. The other warps only add their
// fragments of A. If a product is one operation of the warpgroup, it reads and may be computed
// after all have issued it. With `by_warp` each warp's part is read and computed separately, except
// that B counts as read when all have issued the product.
void issue_product(Warp& warp, MatrixProduct fresh) {
  Cta& cta = *warp.cta;
  const int group = warp.index / 4;
  const auto member = static_cast<std::size_t>(warp.index % 4);
  if (static_cast<std::size_t>(group) >= cta.warpgroups.size()) {
    raise(FaultKind::kInvalidOperand,
          "wgmma by a warp of an incomplete warpgroup: the CTA has too few warps");
  }
  Warpgroup& warpgroup = cta.warpgroups[static_cast<std::size_t>(group)];
  if (cta.checked) own_registers(warp, fresh);
  const std::uint64_t number = warpgroup.issued[member]++;
  if (number - warpgroup.first == warpgroup.queue.size()) {
    locate_operands(cta, fresh);
    warpgroup.queue.push_back(std::move(fresh));
  } else {
    check_alike(product_at(warpgroup, number), fresh);
    std::copy_n(&fresh.a[member][0][0], 4 * kLanes, &product_at(warpgroup, number).a[member][0][0]);
  }
  MatrixProduct& product = product_at(warpgroup, number);
  product.issued |= 1u << member;
  product.group[member] = warp.matrix.group;
  warp.matrix.last = warp.matrix.group;
  const bool all = product.issued == Warpgroup::kAll;
  // With by_warp, a warp may have used its rows of A before the others have issued the product.
  if (cta.by_warp) begin_rows(cta, group, product, static_cast<std::uint32_t>(member));
  if (all) {
    for (std::uint32_t i = 0; i < 4 && !cta.by_warp; ++i) {
      begin_rows(cta, group, product, i);
    }
    begin_product(cta, group, product);
    ++cta.cluster->events;
    cta.wake({Wait::kMatrix, static_cast<std::uint32_t>(group)});
  }
  const bool early = cta.landing == 1 || (cta.landing == 0 && (cta.random.next() & 1));
  if (!early || (!all && !cta.by_warp)) return;
  compute_through(cta, group, cta.by_warp ? 1u << member : Warpgroup::kAll, number);
}

bool wait_products(Warp& warp, std::uint32_t left) {
  Cta& cta = *warp.cta;
  MatrixWarp& matrix = warp.matrix;
  const int group = warp.index / 4;
  const auto member = static_cast<std::size_t>(warp.index % 4);
  if (static_cast<std::size_t>(group) >= cta.warpgroups.size()) return true;
  Warpgroup& warpgroup = cta.warpgroups[static_cast<std::size_t>(group)];
  const std::uint32_t closed = matrix.group - 1;
  const std::uint32_t over = std::max(matrix.waited, closed > left ? closed - left : 0);
  // One past the last product that has to be over.
  std::uint64_t end = warpgroup.first;
  for (std::uint64_t i = warpgroup.first; i < warpgroup.issued[member]; ++i) {
    const MatrixProduct& product = product_at(warpgroup, i);
    if (product.group[member] > over) break;
    if (!cta.by_warp && product.issued != Warpgroup::kAll) return false;
    end = i + 1;
  }
  if (end > warpgroup.first) {
    compute_through(cta, group, cta.by_warp ? 1u << member : Warpgroup::kAll, end - 1);
  }
  matrix.waited = over;
  if (cta.checked) {
    ClusterClocks& clocks = cta.cluster->clocks;
    clocks.wait(warp.agent, clocks.matrix_unit(warp.agent), over + 1);
  }
  return true;
}

void compute_some(Cta& cta) {
  for (std::size_t group = 0; group < cta.warpgroups.size(); ++group) {
    const Warpgroup& warpgroup = cta.warpgroups[group];
    if (warpgroup.queue.empty() || (cta.random.next() & 3) != 0) continue;
    const std::uint64_t number =
        warpgroup.first + cta.random.below(static_cast<std::uint32_t>(warpgroup.queue.size()));
    std::uint32_t warps = Warpgroup::kAll;
    std::uint64_t end = number;
    if (cta.by_warp) {
      warps = static_cast<std::uint32_t>(cta.random.next() & Warpgroup::kAll);
    } else {
      // A product may be computed only after all four warps have issued it.
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
    compute_through(cta, static_cast<int>(group), warps, end);
  }
}

}  // namespace annulus::simulator
