#include "jit/resource_usage.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace annulus::jit {
namespace {

// The number right before `unit` in a line, or 0: number_before("used 1 barriers", " barriers").
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

// A structure at an offset of the file; nothing where it does not lie inside.
template <typename Structure>
std::optional<Structure> structure_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Structure)) return std::nullopt;
  Structure structure;
  std::memcpy(&structure, bytes.data() + offset, sizeof(Structure));
  return structure;
}

class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto header = structure_at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return;
    }
    for (int i = 0; i < header->e_shnum; ++i) {
      const auto section = structure_at<Elf64_Shdr>(
          bytes, header->e_shoff + static_cast<std::uint64_t>(i) * sizeof(Elf64_Shdr));
      if (!section) return;
      sections_.push_back(*section);
    }
    names_ = header->e_shstrndx;
  }

  const Elf64_Shdr* section(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (text(names_, section.sh_name) == name) return &section;
    }
    return nullptr;
  }
  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() ||
        section.sh_size > bytes_.size() - section.sh_offset) {
      return {};
    }
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }
  std::string_view text(std::size_t section, std::uint64_t offset) const {
    if (section >= sections_.size()) return {};
    const std::span<const std::byte> table = contents(sections_[section]);
    if (offset >= table.size()) return {};
    const char* begin = reinterpret_cast<const char*>(table.data() + offset);
    return {begin, strnlen(begin, table.size() - offset)};
  }
  std::string_view symbol(std::uint32_t index) const {
    const Elf64_Shdr* table = section(".symtab");
    if (!table) return {};
    const auto symbol = structure_at<Elf64_Sym>(contents(*table), index * sizeof(Elf64_Sym));
    return symbol ? text(table->sh_link, symbol->st_name) : std::string_view();
  }

 private:
  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::size_t names_ = 0;
};

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

// The section .nv.info is a row of attributes:
//
//   byte 0      format   3: a value follows; 4: a length, and so many bytes more
//   byte 1      what     0x2f registers, 0x11 frame: four bytes of symbol index, four of value
//   bytes 2, 3  the value, or the length
std::optional<CubinUsage> read_cubin(std::span<const std::byte> cubin, std::string_view symbol) {
  constexpr std::byte kSized{4};
  constexpr std::byte kRegisters{0x2f};
  constexpr std::byte kFrame{0x11};
  const Elf elf(cubin);
  const Elf64_Shdr* section = elf.section(".nv.info");
  if (!section) return std::nullopt;
  CubinUsage usage;
  bool found = false;
  std::span<const std::byte> info = elf.contents(*section);
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
  if (const Elf64_Shdr* shared = elf.section(fmt::format(".nv.shared.{}", symbol))) {
    usage.static_shared_bytes = static_cast<int>(shared->sh_size);
  }
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
