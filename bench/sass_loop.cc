#include "sass_loop.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace annulus::bench {
namespace {

struct Line {
  std::string opcode;  // "HGMMA.64x128x16.F32.BF16"; empty for a label
  std::string text;
  std::string label;  // of a label, and of where a branch leads
  bool conditional = false;
};

// "        /*3160*/                   @!P1 BRA `(.L_x_13) ;" or ".L_x_13:".
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
  if (word.starts_with("BRA") && target != std::string::npos) {
    line.label = text.substr(target + 2, text.find(')', target) - target - 2);
  }
  return line;
}

}  // namespace

SassLoop read_sass_loop(const std::string& text) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> labels;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);) {
    if (auto line = parse_line(one)) {
      if (line->opcode.empty()) labels[line->label] = lines.size();
      lines.push_back(std::move(*line));
    }
  }
  const auto waits_for = [&](std::size_t i, const char* pending) {
    return lines[i].opcode.starts_with("WARPGROUP.DEPBAR") &&
           lines[i].text.find(pending) != std::string::npos;
  };
  std::size_t scores = 0;
  while (scores < lines.size() && !waits_for(scores, ", 0x1 ")) ++scores;
  std::size_t end = scores;
  std::size_t begin = 0;
  for (; end < lines.size(); ++end) {
    if (!lines[end].opcode.starts_with("BRA")) continue;
    const auto target = labels.find(lines[end].label);
    if (target != labels.end() && target->second < scores) {
      begin = target->second;
      break;
    }
  }
  if (end >= lines.size()) throw std::runtime_error("no loop around a wait for scores");

  SassLoop loop;
  bool under_values = false;
  for (std::size_t i = begin; i <= end; ++i) {
    const Line& line = lines[i];
    if (line.opcode.empty()) continue;
    ++loop.instructions;
    if (i == scores) under_values = true;
    if (i > scores && waits_for(i, ", 0x0 ")) under_values = false;
    loop.products += line.opcode.starts_with("HGMMA");
    if (line.opcode.starts_with("MUFU.EX2")) {
      ++loop.powers;
      loop.powers_under_values += under_values;
    }
    // A branch over something in the loop: a full tile takes it.
    const auto target = labels.find(line.label);
    if (line.conditional && line.opcode.starts_with("BRA") && target != labels.end() &&
        target->second > i && target->second <= end) {
      i = target->second;
    }
  }
  return loop;
}

std::string disassemble(std::span<const std::byte> cubin) {
  std::string name = (std::filesystem::temp_directory_path() / "annulus-cubin-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw std::runtime_error("no temporary file");
  std::FILE* out = fdopen(file, "wb");
  std::fwrite(cubin.data(), 1, cubin.size(), out);
  std::fclose(out);
  std::FILE* in = popen(("nvdisasm -c " + name + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), in)) {
    text.append(buffer.data(), got);
  }
  const int status = pclose(in);
  std::filesystem::remove(name);
  if (status != 0) {
    throw std::runtime_error("nvdisasm failed (tools/get_nvdisasm fetches it): " +
                             text.substr(0, 200));
  }
  return text;
}

}  // namespace annulus::bench
