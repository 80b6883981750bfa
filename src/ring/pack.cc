#include "ring/pack.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/math.h"

namespace annulus::ring {
namespace {

constexpr std::int64_t kMaxGridZ = 65535;
constexpr std::int64_t kPieceBytes = 16;
constexpr std::int64_t kPieceElements = kPieceBytes / 2;

kernels::PackTensor tensor(const void* from, const Strides& strides, std::int64_t dim,
                           std::int64_t offset) {
  constexpr long long kElementBytes = 2;
  return {.from = from,
          .batch = strides.batch * kElementBytes,
          .head = strides.head * kElementBytes,
          .row = strides.row * kElementBytes,
          .pieces = static_cast<int>(dim / kPieceElements),
          .offset = static_cast<int>(offset)};
}

std::vector<kernels::PackedPiece> list_of(const PackedRows& rows) {
  std::vector<kernels::PackedPiece> list;
  std::int64_t place = 0;
  for (const pattern::Interval& piece : rows.pieces()) {
    list.push_back({static_cast<int>(place), static_cast<int>(piece.begin)});
    place += piece.size();
  }
  return list;
}

}  // namespace

jit::KernelSpec pack_spec(jit::Arch arch) {
  return {.family = "pack_rows",
          .arch = arch,
          .file = "kernels/ring/pack_rows.cu",
          .entry = "pack_rows",
          .structs = {}};
}

Packer::Packer(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
               const PackedRows& rows)
    : kernel_(kernels.get(pack_spec(arch)).kernel), rows_(rows.count()) {
  const std::vector<kernels::PackedPiece> list = list_of(rows);
  list_ = device::upload(context, std::as_bytes(std::span(list)), device::MemoryUse::kTables);
  list_length_ = static_cast<int>(list.size());
}

void Packer::run(const Problem& problem, const Operands& operands, void* to,
                 abi::CUstream stream) const {
  const std::int64_t key_pieces = problem.kv_heads * problem.dim_qk / kPieceElements;
  const std::int64_t width = key_pieces + problem.kv_heads * problem.dim_v / kPieceElements;
  kernels::PackParams params = {
      .tensors = {tensor(operands.k, operands.k_strides, problem.dim_qk, 0),
                  tensor(operands.v, operands.v_strides, problem.dim_v, key_pieces)},
      .to = to,
      .list = reinterpret_cast<const kernels::PackedPiece*>(list_.address()),
      .list_length = list_length_,
      .rows = static_cast<int>(rows_),
      .batch = static_cast<int>(problem.batch),
      .heads = static_cast<int>(problem.kv_heads),
      .width = static_cast<int>(width),
      .padding = 0};
  const auto grid_x = static_cast<unsigned>(base::ceil_div(rows_, kernels::kPackRows));
  for (std::int64_t first = 0; first < problem.batch; first += kMaxGridZ) {
    const std::int64_t batches = std::min(kMaxGridZ, problem.batch - first);
    device::launch(kernel_->function, {grid_x, 2, static_cast<unsigned>(batches)},
                   {kernels::kPackThreads}, 0, stream, {&params});
    for (kernels::PackTensor& part : params.tensors) {
      part.from = static_cast<const std::byte*>(part.from) + batches * part.batch;
    }
    params.to = static_cast<std::byte*>(params.to) + batches * width * kPieceBytes;
  }
}

}  // namespace annulus::ring
