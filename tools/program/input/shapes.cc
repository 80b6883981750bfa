#include "program/input/shapes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "base/files.h"
#include "program/cli/number_option.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"

namespace annulus::program {
namespace {

constexpr std::int64_t kMaxBytes = 8 << 20;
constexpr std::size_t kMaxShapes = 10'000;

// Tuning these takes a few minutes on a simulated device.
constexpr char kSmall[] = R"shapes(
--heads 12 --seq 512 --dim 32 --pattern dense
--heads 12 --seq 512 --dim 32 --pattern "window(63,63) | global(16)"
--heads 8 --kv-heads 2 --seq 1024 --dim 64 --pattern causal
--heads 8 --kv-heads 2 --seq 4096 --dim 64 --pattern "causal & (window(511,0) | global(16))"
--heads 4 --seq 2048 --dim 128 --pattern causal
--heads 8 --kv-heads 1 --seq 1 --seq-k 4096 --dim 128 --pattern causal
)shapes";

// Shapes of current language models: prefill at several lengths, a window, a step of a ring, and
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

// The options on a line of a file of shapes.
struct ShapeLine {
  ProblemArguments shape;
  BatchArguments batch;
  std::string carry = "none";
  std::int64_t count = 0;
};

ShapeLine parse_line(const std::string& line) {
  CLI::App app;
  app.set_help_flag();
  ShapeLine read;
  add_shape_options(app, &read.shape, &read.carry);
  app.add_option("--config", read.shape.config);
  // A search does not use these options, and a plan would reject numbers below 0.
  const auto add_from_0 = [&]<typename T>(const char* name, T* to) {
    add_number(app, name, to, "")->check(CLI::Range(T{0}, std::numeric_limits<T>::max()));
  };
  add_from_0("--kv-splits", &read.shape.kv_splits);
  add_from_0("--max-multiprocessors", &read.shape.max_multiprocessors);
  add_from_0("--count", &read.count);
  add_batch(app, &read.batch);
  add_bounds(app, &read.batch);
  std::vector<std::string> words = words_of(line);
  std::ranges::reverse(words);  // CLI11 expects the last word first
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    base::fail(ErrorCode::kInvalidFile, "{}", error.what());
  }
  return read;
}

}  // namespace

ShapeToTune parse_shape(const std::string& line) {
  const ShapeLine read = parse_line(line);
  ShapeToTune shape;
  shape.count = read.count;
  if (read.batch.given()) {
    shape.what = make_batch(read.shape, read.batch, read.carry);
  } else {
    shape.what = make_shape(read.shape, read.carry);
  }
  if (!read.shape.config.empty()) {
    shape.left_out = "plans with a configuration from the caller";
  }
  return shape;
}

void parse_warm_shape(const std::string& line, std::int64_t max_work, WarmWork* work) {
  ShapeLine read = parse_line(line);
  if (read.batch.given()) {
    BatchInput input = make_batch(read.shape, read.batch, read.carry);
    work->batches.push_back({std::move(input.problem), input.options});
    return;
  }
  read.shape.max_work = max_work;
  PlanOptions options = plan_options(read.shape);
  options.max_multiprocessors = read.shape.max_multiprocessors;
  work->shapes.push_back({make_shape(read.shape, read.carry), options, {}});
}

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
    base::fail(ErrorCode::kInvalidFile, "'{}' has no line that can be tuned ({})", name, text);
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
             "no model is named '{}'; annulus tune --models lists the names, and --shapes takes a "
             "file of shapes of any other model",
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
    // Quotes inside a word are characters of the word, as in blocks("file").
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
        base::fail(ErrorCode::kInvalidFile, "the quote {} of column {} does not end", line[begin],
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
  // A program wrote the log, so a damaged line is left out and the other lines are still read.
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
    // A message that quotes the line would be cut at the zero byte.
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
