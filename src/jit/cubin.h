#ifndef ANNULUS_JIT_CUBIN_H_
#define ANNULUS_JIT_CUBIN_H_

// The sections of a cubin, which is an ELF file of 64 bits.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace annulus::jit {

// A structure at an offset of the bytes; empty where it does not fit inside.
template <typename Structure>
std::optional<Structure> structure_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Structure)) return std::nullopt;
  Structure structure;
  std::memcpy(&structure, bytes.data() + offset, sizeof(Structure));
  return structure;
}

// A view of a cubin's bytes, which must outlive it. Bytes that are no such file give a view without
// sections.
class Cubin {
 public:
  explicit Cubin(std::span<const std::byte> bytes);

  // ".text.<kernel>" is a kernel's machine code, ".nv.info" has the compiler's attributes of all
  // kernels. Empty where there is no such section.
  std::span<const std::byte> section(std::string_view name) const;
  // The stated size of a section, also of one that takes no space in the file.
  std::uint64_t section_bytes(std::string_view name) const;
  // The name of a symbol by its index in the symbol table; empty where it has no such index.
  std::string_view symbol(std::uint32_t index) const;

 private:
  const Elf64_Shdr* header_of(std::string_view name) const;
  std::span<const std::byte> contents(const Elf64_Shdr& section) const;
  std::string_view text(std::size_t section, std::uint64_t offset) const;

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::size_t names_ = 0;
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_CUBIN_H_
