#include "jit/resource_usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "jit/cubin.h"

namespace annulus::jit {
namespace {

// The number directly before `unit` in a line, or 0. Example: number_before("used 1 barriers", "
// barriers").
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + at, number);
  return number;
}

void raise(int& value, int candidate) { value = std::max(value, candidate); }

}  // namespace

std::string to_string(const ResourceUsage& usage) {
  if (!usage.known) return "registers not known (PTX)";
  std::string text = fmt::format("{} registers, ", usage.registers);
  if (usage.spill_store_bytes == 0 && usage.spill_load_bytes == 0) {
    text += "no spills, ";
  } else {
    text += fmt::format("spills {} bytes out and {} in, ", usage.spill_store_bytes,
                        usage.spill_load_bytes);
  }
  text += usage.local_bytes == 0 ? std::string("no local memory")
                                 : fmt::format("{} bytes of local memory", usage.local_bytes);
  if (usage.static_shared_bytes != 0) {
    text += fmt::format(", {} bytes of static shared memory", usage.static_shared_bytes);
  }
  for (const std::string& note : usage.notes) text += "; " + note;
  return text;
}

ResourceUsage parse_compile_log(std::string_view log) {
  ResourceUsage usage;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (line.find(" registers") != std::string_view::npos &&
        line.find("Used ") != std::string_view::npos) {
      usage.known = true;
      raise(usage.registers, number_before(line, " registers"));
      raise(usage.static_shared_bytes, number_before(line, " bytes smem"));
      raise(usage.local_bytes, number_before(line, " bytes cumulative stack size"));
    }
    raise(usage.local_bytes, number_before(line, " bytes stack frame"));
    raise(usage.spill_store_bytes, number_before(line, " bytes spill stores"));
    raise(usage.spill_load_bytes, number_before(line, " bytes spill loads"));
    // "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are ..."
    const std::size_t note = line.find("(C7");
    if (note != std::string_view::npos) usage.notes.emplace_back(line.substr(note));
  }
  return usage;
}

// The section .nv.info is a sequence of attributes:
//
//   byte 0      format   3: a value follows; 4: a length, and that number of bytes follows
//   byte 1      what     0x2f registers, 0x11 frame: four bytes of symbol index, four of value
//   bytes 2, 3  the value, or the length
std::optional<CubinUsage> read_cubin(std::span<const std::byte> cubin, std::string_view symbol) {
  constexpr std::byte kSized{4};
  constexpr std::byte kRegisters{0x2f};
  constexpr std::byte kFrame{0x11};
  const Cubin elf(cubin);
  CubinUsage usage;
  bool found = false;
  std::span<const std::byte> info = elf.section(".nv.info");
  while (info.size() >= 4) {
    const std::byte format = info[0], what = info[1];
    const std::size_t length = format == kSized ? *structure_at<std::uint16_t>(info, 2) : 0u;
    info = info.subspan(4);
    if (length > info.size()) break;
    if (length >= 8 && (what == kRegisters || what == kFrame) &&
        elf.symbol(*structure_at<std::uint32_t>(info, 0)) == symbol) {
      const auto value = static_cast<int>(*structure_at<std::uint32_t>(info, 4));
      (what == kRegisters ? usage.registers : usage.frame_bytes) = value;
      found = found || what == kRegisters;
    }
    info = info.subspan(length);
  }
  if (!found) return std::nullopt;
  usage.static_shared_bytes =
      static_cast<int>(elf.section_bytes(fmt::format(".nv.shared.{}", symbol)));
  return usage;
}

ResourceUsage resource_usage(std::span<const std::byte> cubin, std::string_view symbol,
                             std::string_view log) {
  ResourceUsage usage = parse_compile_log(log);
  if (const std::optional<CubinUsage> stated = read_cubin(cubin, symbol)) {
    usage.known = true;
    usage.registers = stated->registers;
    raise(usage.local_bytes, stated->frame_bytes);
    usage.static_shared_bytes = stated->static_shared_bytes;
  }
  return usage;
}

}  // namespace annulus::jit
