// The limit of work for patterns. Hostile patterns must be refused within the limit, and a count
// must not depend on the way of counting.
#include "base/work.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "pattern/classify.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

template <typename Call>
ErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{0};
}

// `text` with every % replaced by i, joined for i in [first, last).
std::string chain(const std::string& text, const std::string& join, int first, int last) {
  std::string all;
  for (int i = first; i < last; ++i) {
    if (i > first) all += join;
    for (const char c : text) all += c == '%' ? std::to_string(i) : std::string(1, c);
  }
  return all;
}

TEST_CASE("rows of blocks count, also where there is no key") {
  const base::Work work({.steps = 3'000'000}, "making a layout");
  const Pattern pattern = Pattern::parse("causal");
  CHECK(code_of([&] { make_layout(pattern, Extent::whole(std::int64_t{1} << 32, 0), 16, 16); }) ==
        ErrorCode::kLimit);
  CHECK(work.steps() < 100);  // it is known before the first row
  CHECK(code_of([&] { make_layout(pattern, Extent::whole(4096, 0), 16, 16); }) == ErrorCode{0});
  CHECK(work.steps() >= 4096 / 16);
}

TEST_CASE("the layout of a hostile pattern ends within the limit") {
  constexpr std::int64_t kSeq = std::int64_t{1} << 20;
  const std::string hostile[] = {
      "random(65536, 1, 1)",
      chain("~dilated(%)", " & ", 2, 1000),
      chain("segment(%, 3)", " | ", 64, 463),
      "segment(1048576, 2)",
      "axial(2, 524288) & dilated(3)",
      "vertical_slash([" + chain("%", ",", 0, 20000) + "],[" + chain("%00", ",", 1, 10000) + "])",
      "global([" + chain("%00", ",", 1, 10000) + "])",
      "heads(" + chain("dilated(%) & strided(%, 1, 3)", ",", 2, 300) + ")",
  };
  for (const std::string& text : hostile) {
    CAPTURE(text.substr(0, 60));
    const Pattern pattern = Pattern::parse(text);
    const base::Work work({.steps = 3'000'000}, "making a layout");
    const auto code = code_of([&] { make_layout(pattern, Extent::whole(kSeq, kSeq), 1, 1, 300); });
    CHECK(code == ErrorCode::kLimit);
    // No uncounted part may be long. The bound includes one charge.
    CHECK(work.steps() < 100'000'000);
  }
}

TEST_CASE("counting the pairs of a hostile pattern ends within the limit") {
  constexpr std::int64_t kSeq = std::int64_t{1} << 30;
  for (const std::string& text :
       {chain("~dilated(%)", " & ", 2, 1000), std::string("causal & strided(8, 4, 64)"),
        std::string("random(65536, 1, 1)"), chain("segment(%, 3)", " | ", 64, 463)}) {
    CAPTURE(text.substr(0, 60));
    const Pattern pattern = Pattern::parse(text);
    const base::Work work({.steps = 3'000'000}, "counting");
    CHECK(code_of([&] { visible_pairs(pattern, 0, Extent::whole(kSeq, kSeq)); }) ==
          ErrorCode::kLimit);
    CHECK(work.steps() < 100'000'000);
  }
}

TEST_CASE("a layout takes the same steps with any number of threads") {
  const Pattern pattern = Pattern::parse("causal & (strided(7, 2, 16) | random(5, 1, 32))");
  std::set<std::int64_t> counts;
  std::int64_t steps = 0;
  for (const int threads : {1, 2, 4}) {
    base::ThreadPool pool(threads);
    const base::Work work({.steps = 0}, "making a layout");
    make_layout(pattern, Extent::whole(20000, 20000), 16, 16, 2, {20000, 0}, &pool);
    steps = work.steps();
    counts.insert(steps);
  }
  CHECK(counts.size() == 1);
  CHECK(steps > 10'000);
  // The limit is exact: this number of steps is permitted, and half of it is not.
  const auto within = [&](std::int64_t limit) {
    base::ThreadPool pool(4);
    const base::Work work({.steps = limit}, "making a layout");
    return code_of([&] {
      make_layout(pattern, Extent::whole(20000, 20000), 16, 16, 2, {20000, 0}, &pool);
    });
  };
  CHECK(within(steps) == ErrorCode{0});
  CHECK(within(steps / 2) == ErrorCode::kLimit);
}

TEST_CASE("ordinary layouts are far from the default limit") {
  for (const PresetInfo& preset : presets()) {
    CAPTURE(preset.name);
    const Pattern pattern = annulus::preset(preset.name);
    const base::Work work({}, "making a layout");
    make_layout(pattern, Extent::whole(65536, 65536), 128, 128, 12);
    CHECK(work.steps() < kDefaultWorkSteps / 2);
  }
}

TEST_CASE("a text of somebody else names no file, and is no longer than its limit") {
  const auto fails = [](const std::string& text, const ParseOptions& options, ErrorCode code,
                        const std::string& part) {
    try {
      Pattern::parse(text, options);
      FAIL("accepted " << text);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find(part) != std::string::npos);
    }
  };
  const ParseOptions stranger = {.allow_files = false};
  CHECK(Pattern::parse("causal & window(3, 0)", stranger) ==
        Pattern::parse("causal & window(3, 0)"));
  // It is refused before any file is opened, because the file does not exist.
  fails("causal & blocks(\"/no/such/file\")", stranger, ErrorCode::kParse, "column 10: blocks(");
  fails("blocks(\"/no/such/file\")", {}, ErrorCode::kFile, "/no/such/file");
  fails(std::string(100'000, ' ') + "causal", {.work = {.steps = 50'000}}, ErrorCode::kLimit,
        "the text of a pattern");
  fails("causal", {.work = {.cancelled = [] { return true; }}}, ErrorCode::kCancelled, "parsing");
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 16;
  layout.seq_q = layout.seq_k = 16;
  layout.indptr = {0, 1};
  layout.indices = {0};
  const auto given = std::make_shared<const BlockLayout>(layout);
  CHECK(Pattern::parse("blocks()", given, stranger) == blocks(given));
}

TEST_CASE("many random blocks are those of the definition") {
  // Floyd's algorithm with a set, as leaves/random.h describes it.
  constexpr std::int64_t kBlocks = 5000, kChosen = 3000, kSeed = 9;
  const Pattern pattern = random(kChosen, kSeed, 1);
  for (const std::int64_t row : {0, 1, 4999}) {
    std::set<std::int64_t> chosen;
    for (std::int64_t draw = 0; draw < kChosen; ++draw) {
      const std::int64_t top = kBlocks - kChosen + draw;
      const auto words = base::philox(
          {static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(row), 2, 5}, {kSeed, 0});
      __extension__ using Wide = unsigned __int128;
      const std::uint64_t u = words[0] | std::uint64_t{words[1]} << 32;
      const auto t = static_cast<std::int64_t>(Wide{u} * static_cast<std::uint64_t>(top + 1) >> 64);
      if (!chosen.insert(t).second) chosen.insert(top);
    }
    CHECK(std::ssize(chosen) == kChosen);
    Evaluator evaluator(pattern, {kBlocks, 5});
    std::set<std::int64_t> seen;
    for (const Interval& keys : evaluator.row(2, row, {0, kBlocks})) {
      for (std::int64_t k = keys.begin; k < keys.end; ++k) seen.insert(k);
    }
    CHECK(seen == chosen);
  }
}

}  // namespace
}  // namespace annulus::pattern
