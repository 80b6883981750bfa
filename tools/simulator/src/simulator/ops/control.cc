// Control flow (PTX ISA 9.0, section 9.7.12). This file sets Inst::flow. The loop in
// run/run_warp.cc acts on it.

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

void trap(Warp&, const Inst&, Mask mask) { raise(FaultKind::kTrap, "trap", lowest_lane(mask)); }
void nothing(Warp&, const Inst&, Mask) {}

void refuse(Warp& warp, const Inst& inst, Mask mask) {
  raise(FaultKind::kUnsupported, warp.cta->program->refusals[inst.aux], lowest_lane(mask));
}

}  // namespace

void decode_bra(Decoder& decoder) {
  const ptx::Operand& label = decoder.operand(0);
  Inst& inst = decoder.inst();
  inst.kind = Class::kControl;
  inst.flow = Flow::kBranch;
  inst.target = decoder.function().labels[static_cast<std::size_t>(label.label)].target;
}

void decode_ret(Decoder& decoder) {
  decoder.inst().kind = Class::kControl;
  decoder.inst().flow = Flow::kReturn;
}

void decode_exit(Decoder& decoder) {
  decoder.inst().kind = Class::kControl;
  decoder.inst().flow = Flow::kExit;
}

void decode_trap(Decoder& decoder) {
  decoder.inst().kind = Class::kControl;
  decoder.handler(trap);
}

void decode_unmodelled(Decoder& decoder) { decoder.handler(refuse); }
void decode_nop(Decoder& decoder) { decoder.handler(nothing); }

}  // namespace annulus::simulator
