// The boxes of tensor copies, which follow from the tensor map and the coordinates of a copy.

#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator::bulk {
namespace {

constexpr std::uint32_t kMapAlignment = 64;
// A box begins at a multiple of this many bytes from the first element of a row of the tensor.
// Otherwise an H200 raises an illegal instruction. Triton's documentation of such copies has the
// same rule.
constexpr std::int64_t kStartAlignment = 16;

TensorMap load_map(Warp& warp, std::uint64_t address, int lane) {
  Cta& cta = *warp.cta;
  TensorMap map;
  const std::uint64_t window = address / kWindowBytes * kWindowBytes;
  const std::uint64_t offset = address - window;
  if (offset % kMapAlignment != 0) {
    raise_at(FaultKind::kMisaligned, lane,
             "the address {:#x} of a tensor map is not a multiple of {}", address, kMapAlignment);
  }
  const std::byte* from = nullptr;
  if (window == kParamWindow) {
    if (offset + sizeof(map) > cta.program->info.parameter_bytes) {
      raise_at(FaultKind::kOutOfBounds, lane,
               "a tensor map at offset {} of the parameters, which have {} bytes", offset,
               cta.program->info.parameter_bytes);
    }
    from = cta.parameters + offset;
  } else if (window == 0) {
    check_global_read(warp, lane, address, sizeof(map));
    from = reinterpret_cast<const std::byte*>(address);
  } else {
    raise_at(FaultKind::kInvalidOperand, lane,
             "a tensor map at address {:#x}, which is neither a parameter nor in global memory",
             address);
  }
  std::copy_n(from, sizeof(map), reinterpret_cast<std::byte*>(&map));
  if (!map.valid()) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "address {:#x} holds no tensor map of cuTensorMapEncodeTiled, or a changed one",
             address);
  }
  return map;
}

// The CUDA Programming Guide (Tensor Memory Access, "Negative indices and out of bounds"): a box
// that is written to global memory may end after the tensor, but may not begin before it. An H200
// raises an illegal instruction.
void refuse_negative(const BulkCopy& copy) {
  for (std::size_t d = 0; d < copy.map.rank; ++d) {
    if (copy.start[d] >= 0) continue;
    raise_at(
        FaultKind::kInvalidOperand, copy.lane,
        "coordinate {} of dimension {}: a box that is written to a tensor may not begin before "
        "0, only a box that is read",
        copy.start[d], d);
  }
}

}  // namespace

void take_box(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  copy.tensor = true;
  copy.map = load_map(warp, address_at(warp, slots, kOther, copy.lane), copy.lane);
  if (copy.map.rank != inst.small[kRank]) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "a tensor map of {} dimensions for a copy of {}", copy.map.rank, inst.small[kRank]);
  }
  for (std::size_t d = 0; d < copy.map.rank; ++d) {
    copy.start[d] = warp.lanes<std::int32_t>(slots[kCoordinates + d])[copy.lane];
  }
  if (static_cast<Instruction>(inst.small[kKind]) == Instruction::kStore) {
    refuse_negative(copy);
  }
  const std::int64_t first_byte =
      std::int64_t{copy.start[0]} * std::int64_t{bytes_of(copy.map.type)};
  if (first_byte % kStartAlignment != 0) {
    raise_at(
        FaultKind::kInvalidOperand, copy.lane,
        "coordinate {} of dimension 0 is byte {} of a row, not a multiple of {}: with elements of "
        "{} bytes it has to be a multiple of {}",
        copy.start[0], first_byte, kStartAlignment, bytes_of(copy.map.type),
        kStartAlignment / std::int64_t{bytes_of(copy.map.type)});
  }
  if (copy.map.swizzle != Swizzle::kNone &&
      copy.map.row_bytes() != swizzle_span(copy.map.swizzle)) {
    raise_at(FaultKind::kUnsupported, copy.lane,
             "a box whose rows have {} bytes under a swizzle of {} is not modelled",
             copy.map.row_bytes(), swizzle_span(copy.map.swizzle));
  }
  copy.bytes = copy.map.box_bytes();
}

}  // namespace annulus::simulator::bulk
