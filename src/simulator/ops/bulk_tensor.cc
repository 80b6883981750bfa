// The boxes of tensor copies, which follow from the map that a copy names and from its coordinates.

#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator::bulk {
namespace {

constexpr std::uint32_t kMapAlignment = 64;

TensorMap load_map(Warp& warp, std::uint64_t address, int lane) {
  Cta& cta = *warp.cta;
  TensorMap map;
  const std::uint64_t window = address / kWindowBytes * kWindowBytes;
  const std::uint64_t offset = address - window;
  if (offset % kMapAlignment != 0) {
    raise_at(FaultKind::kMisaligned, lane, "tensor map at address {:#x}, no multiple of {}",
             address, kMapAlignment);
  }
  const std::byte* from = nullptr;
  if (window == kParamWindow) {
    if (offset + sizeof(map) > cta.program->info.parameter_bytes) {
      raise_at(FaultKind::kOutOfBounds, lane, "a tensor map at offset {} of {} bytes of parameters",
               offset, cta.program->info.parameter_bytes);
    }
    from = cta.parameters + offset;
  } else if (window == 0) {
    check_global_read(warp, lane, address, sizeof(map));
    from = reinterpret_cast<const std::byte*>(address);
  } else {
    raise_at(FaultKind::kInvalidOperand, lane,
             "a tensor map at address {:#x}: it has to be a parameter, or in global memory",
             address);
  }
  std::copy_n(from, sizeof(map), reinterpret_cast<std::byte*>(&map));
  if (!map.valid()) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "at address {:#x} there is no tensor map that cuTensorMapEncodeTiled made", address);
  }
  return map;
}

}  // namespace

void take_box(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  copy.tensor = true;
  copy.map = load_map(warp, address_at(warp, slots, kOther, copy.lane), copy.lane);
  if (copy.map.rank != inst.small[kRank]) {
    raise_at(FaultKind::kInvalidOperand, copy.lane, "a tensor map of {} dimensions, a copy of {}",
             copy.map.rank, inst.small[kRank]);
  }
  for (std::size_t d = 0; d < copy.map.rank; ++d) {
    copy.start[d] = warp.lanes<std::int32_t>(slots[kCoordinates + d])[copy.lane];
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
