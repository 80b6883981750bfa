#include "jit/arch.h"

#include <charconv>

#include "base/fail.h"

namespace annulus::jit {

std::string to_string(Arch arch) {
  std::string text = fmt::format("sm_{}", arch.number);
  if (arch.feature != '\0') text += arch.feature;
  return text;
}

std::string virtual_name(Arch arch) { return "compute_" + to_string(arch).substr(3); }

Arch parse_arch(std::string_view text) {
  const auto refuse = [&] {
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is not an architecture; write sm_80, sm_89, sm_90a, ...", text);
  };
  if (!text.starts_with("sm_")) refuse();
  Arch arch;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 3, end, arch.number);
  if (error != std::errc() || arch.number < 50 || arch.number > 999 || text[3] == '0') refuse();
  if (rest != end) {
    arch.feature = *rest;
    if (rest + 1 != end || (arch.feature != 'a' && arch.feature != 'f')) refuse();
  }
  return arch;
}

}  // namespace annulus::jit
