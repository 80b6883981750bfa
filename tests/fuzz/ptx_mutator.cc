// Changes PTX by lines and words. Half of the inputs that libFuzzer makes are changed in this way,
// because changing a random byte rarely gives valid PTX.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr const char* kParts[] = {".u8",
                                  ".u16",
                                  ".u32",
                                  ".u64",
                                  ".s8",
                                  ".s16",
                                  ".s32",
                                  ".s64",
                                  ".b8",
                                  ".b16",
                                  ".b32",
                                  ".b64",
                                  ".f16",
                                  ".f16x2",
                                  ".bf16",
                                  ".bf16x2",
                                  ".f32",
                                  ".f64",
                                  ".pred",
                                  ".tf32",
                                  ".e4m3",
                                  ".e4m3x2",
                                  ".wide",
                                  ".lo",
                                  ".hi",
                                  ".sat",
                                  ".ftz",
                                  ".rn",
                                  ".rz",
                                  ".rm",
                                  ".rp",
                                  ".rni",
                                  ".approx",
                                  ".full",
                                  ".global",
                                  ".shared",
                                  ".local",
                                  ".const",
                                  ".param",
                                  ".cta",
                                  ".cluster",
                                  ".gpu",
                                  ".sys",
                                  ".v2",
                                  ".v4",
                                  ".x1",
                                  ".x2",
                                  ".x4",
                                  ".relaxed",
                                  ".acquire",
                                  ".release",
                                  ".acq_rel",
                                  ".volatile",
                                  ".nc",
                                  ".sync",
                                  ".aligned",
                                  ".async",
                                  ".bulk",
                                  ".tensor",
                                  ".mbarrier",
                                  ".expect_tx",
                                  ".parity",
                                  ".multicast",
                                  ".commit_group",
                                  ".wait_group",
                                  ".arrive",
                                  ".init",
                                  ".inval",
                                  ".test_wait",
                                  ".try_wait",
                                  ".shared::cluster",
                                  ".shared::cta",
                                  ".cc",
                                  ".uni",
                                  ".lt",
                                  ".ge",
                                  ".equ",
                                  ".ltu",
                                  ".num",
                                  ".add",
                                  ".min",
                                  ".max",
                                  ".inc",
                                  ".cas",
                                  ".exch",
                                  ".row",
                                  ".col",
                                  ".trans",
                                  ".m16n8k16",
                                  ".m8n8",
                                  ".m64n64k16",
                                  ".idx",
                                  ".bfly",
                                  ".up",
                                  ".down",
                                  ".ballot"};

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '%' || c == '$';
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    lines.back() += c;
    if (c == '\n' || c == ';') lines.emplace_back();
  }
  return lines;
}

// The place and the length of a word of the text. The word may be empty.
std::pair<std::size_t, std::size_t> word_at(const std::string& text, std::size_t at) {
  while (at < text.size() && !in_word(text[at])) ++at;
  std::size_t begin = at, end = at;
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  while (end < text.size() && in_word(text[end])) ++end;
  return {begin, end - begin};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t count) { return random() / 7 % count; };
  std::string all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), all.size());
  std::string text = all.substr(0, end);
  if (text.size() < 8 || below(2) == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<std::string> lines = lines_of(text);
  std::string& line = lines[below(lines.size())];
  std::string& other = lines[below(lines.size())];
  switch (below(8)) {
    case 0:
      line.clear();
      break;
    case 1:
      line += other;
      break;
    case 2:
      std::swap(line, other);
      break;
    case 3:
    case 4: {  // replaces, removes or adds a part of an instruction's name
      std::size_t point = line.find('.', below(line.size() + 1));
      if (point == std::string::npos) point = line.find('.');
      if (point == std::string::npos) break;
      std::size_t last = point + 1;
      while (last < line.size() && (in_word(line[last]) || line[last] == ':')) ++last;
      const std::string part = below(6) == 0 ? "" : kParts[below(std::size(kParts))];
      line.replace(point, below(4) == 0 ? 0 : last - point, part);
      break;
    }
    default: {  // replaces a word by another word of the text, or by a number
      const auto [begin, length] = word_at(line, below(line.size() + 1));
      const auto [from, count] = word_at(text, below(text.size()));
      static constexpr const char* kNumbers[] = {"0",
                                                 "1",
                                                 "-1",
                                                 "31",
                                                 "32",
                                                 "0x80000000",
                                                 "16",
                                                 "128",
                                                 "4",
                                                 "65536",
                                                 "0xffffffffffffffff"};
      line.replace(begin, length,
                   below(3) == 0 ? kNumbers[below(std::size(kNumbers))] : text.substr(from, count));
    }
  }
  std::string result;
  for (const std::string& one : lines) result += one;
  result += all.substr(end);
  if (result.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
