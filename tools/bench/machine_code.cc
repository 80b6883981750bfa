#include "machine_code.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "jit/cubin.h"

namespace annulus::bench {
namespace {

Instruction decode_one(const InstructionWords& words, std::int64_t index) {
  constexpr int kAlways = 7;
  Instruction made;
  made.conditional = instruction_bits(words, 12, 4) != kAlways;
  const std::uint64_t opcode = instruction_bits(words, 0, 12);
  if ((opcode & 0x1ff) == 0x1f0 || (opcode & 0x1ff) == 0x1f3) {
    made.opcode = Opcode::kProduct;
  } else if (opcode == 0x308 && instruction_bits(words, 74, 4) == 2) {
    made.opcode = Opcode::kPower;
  } else if (opcode == 0x9c5 && instruction_bits(words, 47, 1) != 0) {
    made.opcode = Opcode::kWait;
    made.pending = static_cast<int>(instruction_bits(words, 72, 3));
  } else if (opcode == 0x992 || opcode == 0x9ab || opcode == 0x5ab || opcode == 0x98f) {
    made.opcode = Opcode::kFence;
  } else if ((opcode & 0x1ff) == 0x181) {
    made.opcode = Opcode::kGlobalLoad;
  } else if (opcode == 0x947) {
    made.opcode = Opcode::kBranch;
    made.target = branch_target(words, index);
  }
  return made;
}

// A line of a listing: "        /*3160*/                   @!P1 BRA `(.L_x_13) ;" or ".L_x_13:".
struct Line {
  std::string opcode;  // "HGMMA.64x128x16.F32.BF16"; empty for a label
  std::string text;
  std::string label;  // the label that this line defines, or to which a branch leads
  bool conditional = false;
};

std::optional<Line> parse_line(const std::string& text) {
  Line line;
  if (text.starts_with(".L")) {
    line.label = text.substr(0, text.find(':'));
    return line;
  }
  const std::size_t comment = text.find("/*");
  const std::size_t end = text.find("*/");
  if (comment == std::string::npos || end == std::string::npos || end - comment > 8) {
    return std::nullopt;
  }
  std::istringstream words(text.substr(end + 2));
  std::string word;
  words >> word;
  if (word.starts_with("@")) {
    line.conditional = true;
    words >> word;
  }
  if (word.empty() || word[0] < 'A' || word[0] > 'Z') return std::nullopt;
  line.opcode = word;
  line.text = text;
  const std::size_t target = text.find("`(");
  if (line.opcode.starts_with("BRA") && target != std::string::npos) {
    line.label = text.substr(target + 2, text.find(')', target) - target - 2);
  }
  return line;
}

}  // namespace

std::vector<InstructionWords> instruction_words(std::span<const std::byte> cubin,
                                                std::string_view symbol) {
  const auto code = jit::Cubin(cubin).section(".text." + std::string(symbol));
  if (code.empty()) throw std::runtime_error("the cubin has no such kernel");
  std::vector<InstructionWords> made(code.size() / kInstructionBytes);
  std::memcpy(made.data(), code.data(), made.size() * kInstructionBytes);
  return made;
}

std::uint64_t instruction_bits(const InstructionWords& words, int first, int count) {
  std::uint64_t value = words[static_cast<std::size_t>(first / 64)] >> (first % 64);
  if (first < 64 && first + count > 64) value |= words[1] << (64 - first);
  return value & ((std::uint64_t{1} << count) - 1);
}

std::int64_t branch_target(const InstructionWords& words, std::int64_t index, int arch) {
  const auto high = static_cast<std::int64_t>(instruction_bits(words, 34, 48) << 16) >> 16;
  constexpr int kFirstWide = 90;
  const std::int64_t distance =
      arch < kFirstWide ? high
                        : high * 256 + static_cast<std::int64_t>(instruction_bits(words, 16, 8));
  return index + 1 + distance * 4 / static_cast<std::int64_t>(kInstructionBytes);
}

std::vector<Instruction> decode(std::span<const std::byte> cubin, std::string_view symbol) {
  std::vector<Instruction> made;
  for (const InstructionWords& words : instruction_words(cubin, symbol)) {
    made.push_back(decode_one(words, static_cast<std::int64_t>(made.size())));
  }
  return made;
}

std::vector<Instruction> decode_listing(const std::string& text) {
  std::vector<Line> lines;
  std::map<std::string, std::int64_t> labels;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);) {
    auto line = parse_line(one);
    if (!line) continue;
    if (line->opcode.empty()) {
      labels[line->label] = static_cast<std::int64_t>(lines.size());
    } else {
      lines.push_back(std::move(*line));
    }
  }
  std::vector<Instruction> made;
  for (const Line& line : lines) {
    Instruction instruction;
    instruction.conditional = line.conditional;
    if (line.opcode.starts_with("HGMMA") || line.opcode.starts_with("QGMMA")) {
      instruction.opcode = Opcode::kProduct;
    }
    if (line.opcode.starts_with("MUFU.EX2")) instruction.opcode = Opcode::kPower;
    for (const char* fence : {"MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL"}) {
      if (line.opcode.starts_with(fence)) instruction.opcode = Opcode::kFence;
    }
    if (line.opcode.starts_with("LDG")) instruction.opcode = Opcode::kGlobalLoad;
    if (line.opcode.starts_with("WARPGROUP.DEPBAR")) {
      instruction.opcode = Opcode::kWait;
      instruction.pending = std::atoi(line.text.c_str() + line.text.find(", 0x") + 4);
    }
    if (line.opcode.starts_with("BRA")) {
      instruction.opcode = Opcode::kBranch;
      const auto target = labels.find(line.label);
      if (target != labels.end()) instruction.target = target->second;
    }
    made.push_back(instruction);
  }
  return made;
}

MainLoop read_main_loop(std::span<const Instruction> code) {
  const auto count = static_cast<std::int64_t>(code.size());
  const auto at = [&](std::int64_t i) -> const Instruction& {
    return code[static_cast<std::size_t>(i)];
  };
  const auto waits = [&](std::int64_t i, int pending) {
    return at(i).opcode == Opcode::kWait && at(i).pending == pending;
  };
  std::int64_t scores = 0;
  while (scores < count && !waits(scores, 1)) ++scores;
  std::int64_t end = scores;
  while (end < count &&
         !(at(end).opcode == Opcode::kBranch && at(end).target >= 0 && at(end).target < scores)) {
    ++end;
  }
  if (end >= count) throw std::runtime_error("no loop around a wait for scores");

  MainLoop loop;
  bool under_values = false;
  for (std::int64_t i = at(end).target; i <= end; ++i) {
    const Instruction& one = at(i);
    ++loop.instructions;
    if (i == scores) under_values = true;
    if (i > scores && waits(i, 0)) under_values = false;
    loop.products += one.opcode == Opcode::kProduct;
    loop.fences += one.opcode == Opcode::kFence;
    loop.global_loads += one.opcode == Opcode::kGlobalLoad;
    if (one.opcode == Opcode::kPower) {
      ++loop.powers;
      loop.powers_under_values += under_values;
    }
    // A full tile takes a forward branch inside the loop. So the code that the branch skips is not
    // counted.
    if (one.opcode == Opcode::kBranch && one.conditional && one.target > i && one.target <= end) {
      i = one.target - 1;
    }
  }
  return loop;
}

std::string disassemble(const std::string& nvdisasm, std::span<const std::byte> cubin) {
  std::string name = (std::filesystem::temp_directory_path() / "annulus-cubin-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw std::runtime_error("no temporary file");
  std::FILE* out = fdopen(file, "wb");
  std::fwrite(cubin.data(), 1, cubin.size(), out);
  std::fclose(out);
  std::FILE* in = popen(("'" + nvdisasm + "' -c " + name + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), in)) {
    text.append(buffer.data(), got);
  }
  const int status = pclose(in);
  std::filesystem::remove(name);
  if (status != 0) throw std::runtime_error(nvdisasm + " failed: " + text.substr(0, 200));
  return text;
}

}  // namespace annulus::bench
