#include "program/input/shapes.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "base/files.h"

namespace annulus::program {
namespace {

constexpr std::int64_t kMaxBytes = 8 << 20;
constexpr std::size_t kMaxShapes = 10'000;

// A few minutes on a simulated device.
constexpr char kSmall[] = R"shapes(
--heads 12 --seq 512 --dim 32 --pattern dense
--heads 12 --seq 512 --dim 32 --pattern "window(63,63) | global(16)"
--heads 8 --kv-heads 2 --seq 1024 --dim 64 --pattern causal
--heads 8 --kv-heads 2 --seq 4096 --dim 64 --pattern "causal & (window(511,0) | global(16))"
--heads 4 --seq 2048 --dim 128 --pattern causal
--heads 8 --kv-heads 1 --seq 1 --seq-k 4096 --dim 128 --pattern causal
)shapes";

// What language models of today ask for: prefill at several lengths, a window, a ring's step, and
// one new token.
constexpr char kCommon[] = R"shapes(
--heads 32 --kv-heads 8 --seq 1024 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 2048 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 4096 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 8192 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 16384 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 32768 --dim 128 --pattern causal
--heads 32 --kv-heads 8 --seq 32768 --dim 128 --pattern "causal & (window(4095,0) | sink(16))"
--heads 32 --kv-heads 8 --seq 8192 --dim 128 --pattern dense --carry both
--heads 16 --seq 4096 --dim 64 --pattern causal
--heads 16 --seq 16384 --dim 64 --pattern causal
--heads 16 --seq 8192 --dim 64 --pattern dense
--heads 16 --kv-heads 8 --seq 8192 --dim 256 --pattern causal --softcap 50
--heads 128 --seq 4096 --dim 192/128 --pattern causal
--batch 32 --heads 32 --kv-heads 8 --seq 1 --seq-k 4096 --dim 128 --pattern causal
)shapes";

}  // namespace

std::vector<Tunable> read_shapes(const std::string& name) {
  std::vector<ShapeToTune> shapes;
  std::map<std::string, int> left_out;
  read_shape_lines(name, [&](const std::string& line) {
    ShapeToTune shape = parse_shape(line);
    if (!shape.left_out.empty()) {
      ++left_out[shape.left_out];
    } else {
      shapes.push_back(std::move(shape));
    }
  });
  std::string text;
  for (const auto& [what, count] : left_out) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", what, count);
  }
  if (shapes.empty()) {
    base::fail(ErrorCode::kInvalidFile, "'{}' holds nothing to tune ({})", name, text);
  }
  if (!text.empty()) {
    std::fprintf(stderr, "annulus tune: '%s' has lines that cannot be tuned (%s)\n", name.c_str(),
                 text.c_str());
  }
  std::ranges::stable_sort(shapes, std::ranges::greater(), &ShapeToTune::count);
  std::vector<Tunable> all;
  for (ShapeToTune& shape : shapes) all.push_back(std::move(shape.what));
  return all;
}

namespace {

Model model_named(const std::string& name) {
  std::optional<Model> model = find_model(name);
  if (model) return *std::move(model);
  base::fail(ErrorCode::kInvalidArgument,
             "no model is named '{}'; annulus tune --models lists those that are known, and "
             "--shapes takes a file of shapes of any other",
             name);
}

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f", kQuotes = "\"'`";
  const auto is_one_of = [&](std::string_view set, std::size_t place) {
    return set.find(line[place]) != set.npos;
  };
  std::vector<std::string> words;
  for (std::size_t at = line.find_first_not_of(kSpace); at != line.npos;
       at = line.find_first_not_of(kSpace, at)) {
    std::string& word = words.emplace_back();
    // Quotes elsewhere are characters of the word, as in blocks("file").
    while (at < line.size() && !is_one_of(kSpace, at)) {
      const bool opens = is_one_of(kQuotes, at) &&
                         (word.empty() || (word.starts_with("--") && word.ends_with('=')));
      if (!opens) {
        word += line[at++];
        continue;
      }
      const std::size_t begin = at++;
      for (; at < line.size() && line[at] != line[begin]; ++at) {
        if (line[at] == '\\' && at + 1 < line.size() && line[at + 1] == line[begin]) ++at;
        word += line[at];
      }
      if (at == line.size()) {
        base::fail(ErrorCode::kInvalidFile, "nothing ends the quote {} of column {}", line[begin],
                   begin + 1);
      }
      if (++at < line.size() && !is_one_of(kSpace, at)) {
        base::fail(ErrorCode::kInvalidFile,
                   "column {} follows the quotes of column {}; put a space between them", at + 1,
                   begin + 1);
      }
    }
  }
  return words;
}

std::vector<Problem> read_model(const std::string& name) { return problems_of(model_named(name)); }

void read_shape_lines(const std::string& name,
                      const std::function<void(const std::string&)>& read) {
  std::string text;
  if (name == "small") {
    text = kSmall;
  } else if (name == "common") {
    text = kCommon;
  } else {
    base::FileSystem files;
    const std::vector<std::byte> bytes = base::read_file(files, name, kMaxBytes);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // In a log, which nobody wrote by hand, a damaged line costs only itself.
  const bool is_log = text.starts_with("# annulus shapes");
  std::size_t shapes = 0;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    if (line.back() == '\r') line.pop_back();
    // Messages that quote the line would end there.
    if (const std::size_t zero = line.find('\0'); zero != line.npos) {
      base::fail(ErrorCode::kInvalidFile,
                 "{}, line {}: column {} has a zero byte; a file of shapes is text", name, number,
                 zero + 1);
    }
    try {
      read(line);
    } catch (const Error& error) {
      if (!is_log) {
        base::fail(ErrorCode::kInvalidFile, "{}, line {}: {}", name, number, error.what());
      }
      std::fprintf(stderr, "annulus: %s, line %d is left out: %s\n", name.c_str(), number,
                   error.what());
      continue;
    }
    if (++shapes > kMaxShapes) {
      base::fail(ErrorCode::kInvalidFile, "'{}' has more than {} shapes", name, kMaxShapes);
    }
  }
  if (shapes == 0) base::fail(ErrorCode::kInvalidFile, "'{}' holds no shape", name);
}

}  // namespace annulus::program
