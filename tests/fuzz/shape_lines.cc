// Lines of files of shapes, as `annulus tune` and `annulus warm` read them. An input is a line. If
// its first byte is above 127, the bytes choose words of such lines and numbers for them.
//
// The shape log must write a shape that was read as a line that reads as the same shape.

#include <string>
#include <variant>
#include <vector>

#include "base/work.h"
#include "fuzz/fuzz.h"
#include "program/input/shapes.h"
#include "shape_log/shape_line.h"

namespace annulus::fuzz {
namespace {

constexpr std::int64_t kMaxWork = 1'000'000;

// Words that begin a line, continue it, or are wrong in it.
constexpr const char* kBegins[] = {
    "--heads 8 --kv-heads 2 --seq 4096 --dim 64 --pattern \"causal & (window(511,0) | "
    "global(16))\"",
    "--batch 32 --heads 32 --kv-heads 8 --seq 1 --seq-k 4096 --dim 128 --pattern causal",
    "--heads 4 --seq 512 --dim 192/128 --dtype e4m3 --carry both --count 3",
    "--heads 4 --kv-heads 2 --dim 64 --pattern causal --requests \"1/4096 x 8, 1/77\" --page 16",
    "--heads 4 --kv-heads 2 --dim 64 --pattern causal --most-requests 8 --most-keys-of-one 500",
    "--heads 4 --dim 64 --most-requests 8 --most-queries 80 --most-queries-of-one 20 "
    "--most-keys-of-one 500 --most-keys 2000 --page 16 --block-keys 64 --most-blocks 12",
    ""};
constexpr const char* kNumbered[] = {"--batch",
                                     "--heads",
                                     "--kv-heads",
                                     "--seq",
                                     "--seq-k",
                                     "--q0",
                                     "--k0",
                                     "--layer",
                                     "--dim",
                                     "--softcap",
                                     "--kv-splits",
                                     "--max-multiprocessors",
                                     "--count",
                                     "--page",
                                     "--part-keys",
                                     "--most-requests",
                                     "--most-queries",
                                     "--most-keys",
                                     "--most-queries-of-one",
                                     "--most-keys-of-one",
                                     "--block-keys",
                                     "--most-blocks",
                                     "--scale-block",
                                     "--kv-batch",
                                     "--requests",
                                     "--interleave",
                                     "--scale"};
constexpr const char* kWords[] = {"--pattern dense",
                                  "--pattern \"sum(causal, window(3, 3))\"",
                                  "--pattern \"documents([0,5,9]) | causal\"",
                                  "--pattern 'strided(8)'",
                                  "--pattern \"(\"",
                                  "--dtype fp16",
                                  "--dtype e4m3",
                                  "--dtype fp32",
                                  "--carry in",
                                  "--carry out",
                                  "--table csr",
                                  "--row-limits",
                                  "--row-limits=7",
                                  "--interleave 16/4/1",
                                  "--score \"softcap(30)\"",
                                  "--alibi",
                                  "--sinks",
                                  "--config \"mma m64 n64 w4 s2 q\"",
                                  "--config \"decode n64 s2\"",
                                  "--requests \"1/1 x 40000, 1/1 x 40000\"",
                                  "--requests \"512/20, 0/7\"",
                                  "--help",
                                  "--unknown",
                                  "\"",
                                  "'"};

template <std::size_t kCount>
const char* one_of(const char* const (&words)[kCount], Bytes& bytes) {
  return words[bytes.below(kCount)];
}

std::string drawn(Bytes& bytes) {
  std::string line = one_of(kBegins, bytes);
  for (std::int64_t more = bytes.below(5); more > 0; --more) {
    line += ' ';
    if (bytes.below(2) == 0) {
      line += one_of(kWords, bytes);
      continue;
    }
    line += one_of(kNumbered, bytes);
    line += ' ' + std::to_string(bytes.number());
    if (bytes.below(4) == 0) line += '/' + std::to_string(bytes.number());
  }
  return line;
}

// The shapes of a line, written as lines.
std::vector<std::string> written(const std::string& line) {
  WarmWork work;
  program::parse_warm_shape(line, kMaxWork, &work);
  std::vector<std::string> lines;
  for (const auto& shape : work.shapes) {
    lines.push_back(shape_log::shape_line(shape.problem, shape.options));
  }
  for (const auto& batch : work.batches) {
    lines.push_back(shape_log::shape_line(batch.problem, batch.options));
  }
  return lines;
}

void check(const std::string& line) {
  refusal_of([&] { program::parse_shape(line); });
  std::vector<std::string> lines;
  if (refusal_of([&] { lines = written(line); })) return;
  if (lines.size() != 1) wrong("'{}' is {} shapes", line, lines.size());
  std::vector<std::string> again;
  const auto refused = refusal_of([&] { again = written(lines[0]); });
  if (refused) wrong("'{}' is written as '{}', which is refused", line, lines[0]);
  if (again != lines) wrong("'{}' is written as '{}', which is '{}'", line, lines[0], again[0]);
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace annulus::fuzz;
  Bytes bytes(data, size);
  if (size > 0 && data[0] > 127) {
    bytes.byte();
    check(drawn(bytes));
    return 0;
  }
  // read_shape_lines() passes lines without these bytes.
  const std::string_view text = bytes.rest();
  const std::string line(text.substr(0, text.find_first_of(std::string_view("\0\n", 2))));
  if (line.find_first_not_of(" \t\r") != line.npos) check(line);
  return 0;
}
