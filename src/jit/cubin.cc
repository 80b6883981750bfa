#include "jit/cubin.h"

namespace annulus::jit {

Cubin::Cubin(std::span<const std::byte> bytes) : bytes_(bytes) {
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

const Elf64_Shdr* Cubin::header_of(std::string_view name) const {
  for (const Elf64_Shdr& section : sections_) {
    if (text(names_, section.sh_name) == name) return &section;
  }
  return nullptr;
}

std::span<const std::byte> Cubin::section(std::string_view name) const {
  const Elf64_Shdr* header = header_of(name);
  return header ? contents(*header) : std::span<const std::byte>();
}

std::uint64_t Cubin::section_bytes(std::string_view name) const {
  const Elf64_Shdr* header = header_of(name);
  return header ? header->sh_size : 0;
}

std::span<const std::byte> Cubin::contents(const Elf64_Shdr& section) const {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() ||
      section.sh_size > bytes_.size() - section.sh_offset) {
    return {};
  }
  return bytes_.subspan(section.sh_offset, section.sh_size);
}

std::string_view Cubin::text(std::size_t section, std::uint64_t offset) const {
  if (section >= sections_.size()) return {};
  const std::span<const std::byte> table = contents(sections_[section]);
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data() + offset);
  return {begin, strnlen(begin, table.size() - offset)};
}

std::string_view Cubin::symbol(std::uint32_t index) const {
  const Elf64_Shdr* table = header_of(".symtab");
  if (!table) return {};
  const auto symbol = structure_at<Elf64_Sym>(contents(*table), index * sizeof(Elf64_Sym));
  return symbol ? text(table->sh_link, symbol->st_name) : std::string_view();
}

}  // namespace annulus::jit
