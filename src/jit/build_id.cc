#include "jit/build_id.h"

#include <fmt/core.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace annulus::jit {
namespace {

struct Search {
  std::uintptr_t address;
  std::string_view found;  // the bytes of the id
};

// Notes follow each other. Each has the sizes of its name and description, a type, the name and the
// description. Name and description are padded to four bytes.
std::string_view id_in_notes(const char* notes, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const std::size_t name = (std::size_t{note.n_namesz} + 3) & ~std::size_t{3};
    const std::size_t description = (std::size_t{note.n_descsz} + 3) & ~std::size_t{3};
    const std::size_t whole = sizeof(note) + name + description;
    if (whole > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof(note), "GNU", 4) == 0) {
      return {notes + sizeof(note) + name, note.n_descsz};
    }
    notes += whole;
    bytes -= whole;
  }
  return {};
}

// Does not throw: if an exception passed through a function of the C library, that library would
// load more code. If there were no memory for the code, the process would end.
int visit(dl_phdr_info* library, std::size_t, void* argument) noexcept {
  Search& search = *static_cast<Search*>(argument);
  bool holds = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    holds = holds || (segment.p_type == PT_LOAD && search.address >= begin &&
                      search.address - begin < segment.p_memsz);
  }
  if (!holds) return 0;
  for (int i = 0; i < library->dlpi_phnum && search.found.empty(); ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    search.found = id_in_notes(reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr),
                               segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(visit, &search);
  if (search.found.empty()) return "no build id";
  std::string hex;
  for (const char byte : search.found) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return hex;
}

}  // namespace annulus::jit
