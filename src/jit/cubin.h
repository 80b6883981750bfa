#ifndef ANNULUS_JIT_CUBIN_H_
#define ANNULUS_JIT_CUBIN_H_

// The sections of a cubin, which is a 64-bit ELF file.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace annulus::jit {

// Reads a structure at an offset. No value if it does not fit inside the bytes.
template <typename Structure>
std::optional<Structure> structure_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Structure)) return std::nullopt;
  Structure structure;
  std::memcpy(&structure, bytes.data() + offset, sizeof(Structure));
  return structure;
}

// A view of a cubin's bytes, which must outlive it. If the bytes are not a cubin, the view has no
// sections.
class Cubin {
 public:
  explicit Cubin(std::span<const std::byte> bytes);

  // The section ".text.<kernel>" is a kernel's machine code, and ".nv.info" has the compiler's
  // attributes of all kernels. Empty if there is no such section.
  std::span<const std::byte> section(std::string_view name) const;
  // The stated size of a section, which may take no space in the file.
  std::uint64_t section_bytes(std::string_view name) const;
  // The name of a symbol by its index in the symbol table. Empty if the index does not exist.
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
