#include "sass.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace annulus::bench {
namespace {

using enum SassKind;

struct KnownOpcode {
  unsigned low;  // bits 0 ... 8
  SassKind kind;
  const char* name;
};

constexpr KnownOpcode kOpcodes[] = {
    {0x002, kLogic, "MOV"},
    {0x003, kLogic, "P2R"},
    {0x004, kLogic, "R2P"},
    {0x005, kOther, "CS2R"},
    {0x006, kOther, "VOTE"},
    {0x007, kLogic, "SEL"},
    {0x008, kLogic, "FSEL"},
    {0x009, kLogic, "FMNMX"},
    {0x00b, kLogic, "FSETP"},
    {0x00c, kLogic, "ISETP"},
    {0x010, kLogic, "IADD3"},
    {0x011, kLogic, "LEA"},
    {0x012, kLogic, "LOP3"},
    {0x013, kLogic, "IABS"},
    {0x016, kLogic, "PRMT"},
    {0x017, kLogic, "IMNMX"},
    {0x019, kLogic, "SHF"},
    {0x01c, kLogic, "PLOP3"},
    {0x020, kFloat, "FMUL"},
    {0x021, kFloat, "FADD"},
    {0x023, kFloat, "FFMA"},
    {0x024, kInteger, "IMAD"},
    {0x025, kInteger, "IMAD.WIDE"},
    {0x027, kInteger, "IMAD.HI"},
    {0x02f, kOther, "ELECT"},
    {0x036, kLogic, "VIADD"},
    {0x03b, kShared, "LDSM"},
    {0x03c, kProduct, "HMMA"},
    {0x03e, kLogic, "F2FP"},
    {0x044, kShared, "STSM"},
    {0x046, kLogic, "VIADDMNMX"},
    {0x048, kLogic, "VIMNMX"},
    {0x082, kOther, "UMOV"},
    {0x086, kOther, "VOTEU"},
    {0x087, kOther, "USEL"},
    {0x08c, kOther, "UISETP"},
    {0x090, kOther, "UIADD3"},
    {0x091, kOther, "ULEA"},
    {0x092, kOther, "ULOP3"},
    {0x096, kOther, "UPRMT"},
    {0x099, kOther, "USHF"},
    {0x0a4, kOther, "UIMAD"},
    {0x0a5, kOther, "UIMAD.WIDE"},
    {0x0b9, kOther, "ULDC"},
    {0x0ca, kOther, "R2UR"},
    {0x105, kSpecial, "F2I"},
    {0x106, kSpecial, "I2F"},
    {0x108, kSpecial, "MUFU"},
    {0x118, kOther, "NOP"},
    {0x119, kSystem, "S2R"},
    {0x11a, kCountWait, "DEPBAR"},
    {0x11d, kBarrier, "BAR.SYNC"},
    {0x141, kOther, "BSYNC"},
    {0x144, kLeave, "CALL"},
    {0x145, kOther, "BSSY"},
    {0x146, kOther, "YIELD"},
    {0x147, kBranch, "BRA"},
    {0x148, kOther, "WARPSYNC"},
    {0x14d, kLeave, "EXIT"},
    {0x181, kGlobal, "LDG"},
    {0x183, kGlobal, "LDL"},
    {0x182, kSystem, "LDC"},
    {0x184, kShared, "LDS"},
    {0x186, kGlobal, "STG"},
    {0x187, kGlobal, "STL"},
    {0x188, kShared, "STS"},
    {0x189, kShuffle, "SHFL"},
    {0x18f, kFence, "CCTL"},
    {0x192, kFence, "MEMBAR"},
    {0x1a7, kPhaseArrive, "SYNCS.ARRIVE"},
    {0x1ab, kFence, "ERRBAR"},
    {0x1ae, kCopy, "LDGSTS"},
    {0x1af, kCopyGroup, "LDGDEPBAR"},
    {0x1c3, kSystem, "S2UR"},
    {0x1c5, kOther, "WARPGROUP.ARRIVE"},
    {0x1f0, kGroupProduct, "HGMMA"},
    {0x1f3, kGroupProduct, "QGMMA"},
};

// Decodes the details in the bits of a particular opcode.
void decode_own_bits(const InstructionWords& words, std::int64_t index, int arch, Sass& made) {
  const auto bits = [&](int first, int count) {
    return static_cast<int>(instruction_bits(words, first, count));
  };
  const std::string_view name = made.name;
  switch (made.kind) {
    case kGroupProduct:
      made.columns = 8 * (bits(53, 6) + 1);
      made.rows_in_registers = bits(10, 1) != 0;
      made.ends_group = bits(84, 3) == 0;
      break;
    case kBarrier:
      if (bits(9, 3) == 5) made.barrier = bits(54, 4);
      if (bits(77, 1) != 0) {
        made.kind = kBarrierArrive;
        made.name = "BAR.ARV";
      }
      break;
    case kPhaseArrive:
      if (bits(72, 1) != 0) {
        made.kind = kPhaseWait;
        made.name = "SYNCS.PHASECHK";
      }
      break;
    case kCountWait:
      made.scoreboard = bits(44, 3);
      made.pending = bits(38, 6);
      break;
    case kBranch:
      made.target = branch_target(words, index, arch);
      made.diverging = bits(91, 1) != 0;
      break;
    case kShared:
      made.wavefronts = 1 << (name.ends_with("SM") ? bits(72, 2) : std::max(0, bits(73, 3) - 4));
      break;
    case kCopy:
      made.wavefronts = 4;  // 16 bytes for each lane
      break;
    default:
      if (name == "WARPGROUP.ARRIVE" && bits(47, 1) != 0) {
        made.kind = kGroupWait;
        made.name = "WARPGROUP.DEPBAR";
        made.pending = bits(72, 3);
      }
  }
}

Sass sass_of(const InstructionWords& words, std::int64_t index, int arch) {
  constexpr int kAlways = 7, kNever = 15, kNone = 7;
  const auto bits = [&](int first, int count) {
    return static_cast<int>(instruction_bits(words, first, count));
  };
  Sass made;
  made.kind = kUnknown;
  made.name = "unknown";
  const auto low = static_cast<unsigned>(bits(0, 9));
  for (const KnownOpcode& known : kOpcodes) {
    if (known.low == low) {
      made.kind = known.kind;
      made.name = known.name;
    }
  }
  made.address = index * static_cast<std::int64_t>(sizeof(words));
  made.conditional = bits(12, 4) != kAlways;
  made.never = bits(12, 4) == kNever;
  made.stall = bits(105, 4);
  made.yields = bits(109, 1) == 0;
  made.write_scoreboard = bits(110, 3) == kNone ? -1 : bits(110, 3);
  made.read_scoreboard = bits(113, 3) == kNone ? -1 : bits(113, 3);
  made.waits_for = static_cast<unsigned>(bits(116, 6));
  // A branch has a second predicate.
  if (made.kind == kBranch && bits(87, 3) != kAlways) made.conditional = true;
  decode_own_bits(words, index, arch, made);
  return made;
}

bool is_product(const Sass& one) { return one.kind == kProduct || one.kind == kGroupProduct; }

// Whether every step has this instruction, so that a branch must not skip it.
bool is_of_every_step(const Sass& one) {
  constexpr SassKind kinds[] = {kProduct,       kGroupProduct, kGroupWait,   kCountWait, kCopy,
                                kBarrierArrive, kBarrier,      kPhaseArrive, kPhaseWait};
  return std::ranges::find(kinds, one.kind) != std::end(kinds);
}

// The first and the last instruction of the main loop.
std::pair<std::int64_t, std::int64_t> find_loop(std::span<const Sass> code) {
  const auto begin = code.begin();
  const auto closes = [&](std::int64_t at, std::int64_t around) {
    const Sass& one = code[static_cast<std::size_t>(at)];
    return one.kind == kBranch && one.target >= 0 && one.target <= around;
  };
  const auto count = static_cast<std::int64_t>(code.size());
  const auto scores =
      std::ranges::find_if(
          code, [](const Sass& one) { return one.kind == kGroupWait && one.pending == 1; }) -
      begin;
  if (scores < count) {
    for (std::int64_t at = scores; at < count; ++at) {
      if (closes(at, scores)) return {code[static_cast<std::size_t>(at)].target, at};
    }
  } else {
    const std::int64_t first = std::ranges::find_if(code, is_product) - begin;
    for (std::int64_t at = count - 1; first < count && at > first; --at) {
      if (closes(at, first)) return {code[static_cast<std::size_t>(at)].target, at};
    }
  }
  throw std::runtime_error("no main loop with products");
}

}  // namespace

std::vector<Sass> decode_sass(std::span<const std::byte> cubin, std::string_view symbol,
                              jit::Arch arch) {
  std::vector<Sass> made;
  for (const InstructionWords& words : instruction_words(cubin, symbol)) {
    made.push_back(sass_of(words, static_cast<std::int64_t>(made.size()), arch.number));
  }
  return made;
}

std::vector<Sass> read_step(std::span<const Sass> code, int products) {
  const auto [first, last] = find_loop(code);
  const auto range = [&](std::int64_t from, std::int64_t to) {
    return code.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
  };
  std::vector<Sass> step;
  int found = 0;
  for (std::int64_t at = first; at <= last; ++at) {
    const Sass& one = code[static_cast<std::size_t>(at)];
    if (one.kind == kUnknown || (one.kind == kLeave && !one.conditional)) {
      throw std::runtime_error(
          fmt::format("an instruction of unknown effect ({}) at {:#x}", one.name, one.address));
    }
    step.push_back(one);
    found += is_product(one);
    if (found > products) break;
    if (one.kind != kBranch || one.diverging) continue;
    const bool inside = one.target >= first && one.target <= last;
    if (!inside && !one.conditional) throw std::runtime_error("the main loop ends in its middle");
    if (!inside) continue;
    bool& taken = step.back().taken;
    if (one.target <= at) {
      const auto in_body = std::ranges::count_if(range(one.target, at), is_product);
      const auto behind = std::ranges::count_if(range(at, last), is_product);
      taken = at == last || (in_body > 0 && found + in_body + behind <= products);
    } else {
      taken = !one.conditional || std::ranges::none_of(range(at + 1, one.target), is_of_every_step);
    }
    if (taken && at != last) at = one.target - 1;
  }
  if (found != products) {
    throw std::runtime_error(fmt::format("{} products in a step that needs {}", found, products));
  }
  return step;
}

}  // namespace annulus::bench
