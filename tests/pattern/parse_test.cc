#include "pattern/parse.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "pattern/node.h"
#include "pattern/random_pattern.h"
#include "support/faulty_files.h"
#include "support/options.h"
#include "support/refused_text.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::code_of;
using test::random_pattern;

void refused(const std::string& text, std::size_t column, const std::string& part,
             ErrorCode code = ErrorCode::kParse) {
  test::refused_text([](const std::string& from) { return Pattern::parse(from); }, text, column,
                     part, code);
}

TEST_CASE("leaves and operators parse to the trees that the functions make") {
  CHECK(Pattern::parse("dense") == Pattern());
  CHECK(Pattern::parse(" causal\t\n") == causal());
  CHECK(Pattern::parse("window(511,0)") == window(511, 0));
  CHECK(Pattern::parse("window( -1 , 7 )") == window(-1, 7));
  CHECK(Pattern::parse("sink(4)") == sink(4));
  CHECK(Pattern::parse("prefix(4)") == sink(4));
  CHECK(Pattern::parse("global(16)") == global(16));
  CHECK(Pattern::parse("global([9, -3, 9])") == global({-3, 9}));
  CHECK(Pattern::parse("global([])") == global(std::span<const std::int64_t>()));
  CHECK(Pattern::parse("documents([0,512,700])") == documents({0, 512, 700}));
  CHECK(Pattern::parse("causal & (window(511,0) | global(16))") ==
        (causal() & (window(511, 0) | global(16))));
  CHECK(Pattern::parse("dilated(3)") == dilated(3));
  CHECK(Pattern::parse("block_dilated(3, 1)") == dilated(3));
  CHECK(Pattern::parse("block_dilated(4,64)") == block_dilated(4, 64));
  CHECK(Pattern::parse("strided(8, 1, 64)") == strided(8, 1, 64));
  CHECK(Pattern::parse("random(3, 7, 64)") == annulus::random(3, 7, 64));
  CHECK(Pattern::parse("segment(2048, 4)") == segment(2048, 4));
  CHECK(Pattern::parse("axial(6, 8)") == axial(6, 8));
  CHECK(Pattern::parse("natten(32, 48, 7)") == natten(32, 48, 7));
  CHECK(Pattern::parse("vertical_slash([9, 0, 9], [-3, 0])") == vertical_slash({0, 9}, {0, -3}));
  CHECK(Pattern::parse("hierarchical([(1, 4, 64), (8, -1, 64)])") ==
        hierarchical({{1, 4, 64}, {8, -1, 64}}));
  CHECK(Pattern::parse("heads(causal, sink(1) | sink(2), ~dense)") ==
        heads({causal(), sink(1) | sink(2), ~dense()}));
  CHECK(Pattern::parse("causal & heads(dense, sink(2))") == (causal() & heads({dense(), sink(2)})));
  CHECK(Pattern::parse("sum(causal, sink(3) & causal)") == sum({causal(), sink(3) & causal()}));
  CHECK(Pattern::parse("heads(causal)") == causal());
  CHECK(Pattern::parse("(sum((causal)))") == causal());
  CHECK(Pattern::parse("causal & preset(hierarchical_fine)") ==
        (causal() & preset("hierarchical_fine")));
  CHECK_FALSE(Pattern::parse("strided(8, 1, 64)") == strided(8, 1, 65));
  CHECK_FALSE(heads({causal(), dense()}) == sum({causal(), dense()}));
  CHECK_FALSE(vertical_slash({1}, {}) == vertical_slash({}, {1}));
  CHECK_FALSE(Pattern::parse("sink(4)") == sink(5));
  CHECK_FALSE(Pattern::parse("causal & sink(4)") == (sink(4) & causal()));
}

TEST_CASE("blocks() is the layout that is given beside the text") {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 4;
  layout.seq_q = layout.seq_k = 8;
  layout.indptr = {0, 1, 2};
  layout.indices = {1, 0};
  const auto shared = std::make_shared<const BlockLayout>(layout);
  CHECK(Pattern::parse("causal & (blocks() | sink( 1 ) | blocks( ))", shared) ==
        (causal() & (blocks(shared) | sink(1) | blocks(shared))));
  CHECK(Pattern::parse("causal", nullptr) == causal());
  refused("causal & blocks()", 10, "there is none");
  const auto refuse = [](const char* text, std::shared_ptr<const BlockLayout> given,
                         const std::string& part) {
    std::string message;
    CHECK(code_of([&] { Pattern::parse(text, given); }, &message) == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  refuse("causal", shared, "does not use it");
  layout.indices = {2, 0};
  refuse("blocks()", std::make_shared<const BlockLayout>(layout), "indices[0] = 2");
}

TEST_CASE("a layout's text says whether a problem may lie outside of it") {
  const test::ScratchFolder scratch;
  const std::string path = scratch / "a.layout";
  Random random(3);
  const BlockLayout layout = test::random_layout(&random, 20, 20);
  save_layout(layout, path);
  const auto shared = std::make_shared<const BlockLayout>(layout);
  const Pattern hiding = blocks(path, OutsideLayout::kHidden);
  CHECK(hiding.to_string() == "blocks(\"" + path + "\", hide_outside)");
  CHECK(Pattern::parse(hiding.to_string()) == hiding);
  CHECK_FALSE(Pattern::parse("blocks(\"" + path + "\")") == hiding);
  CHECK(Pattern::parse("blocks( hide_outside )", shared) == hiding);
  CHECK(Pattern::parse("blocks(hide_outside) | blocks()", shared) == (hiding | blocks(shared)));
  refused("blocks(hide_outsides)", 8, "'\"'");
  refused("blocks(\"" + path + "\", outside)", path.size() + 12, "expected 'hide_outside'");
  refused("blocks(\"" + path + "\",", path.size() + 11, "text ends");
  CHECK(code_of([&] { blocks(shared, static_cast<OutsideLayout>(7)); }) ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("not binds tighter than and, and tighter than or") {
  CHECK(Pattern::parse("~causal & sink(1) | sink(2)") == ((~causal() & sink(1)) | sink(2)));
  CHECK(Pattern::parse("sink(2) | ~causal & sink(1)") == (sink(2) | (~causal() & sink(1))));
  CHECK(Pattern::parse("~~causal") == ~~causal());
  CHECK((causal() & (sink(1) & sink(2))) == ((causal() & sink(1)) & sink(2)));
}

TEST_CASE("printing uses no parentheses that are not needed") {
  for (const char* text :
       {"dense", "~causal", "~(causal & sink(1))", "causal & sink(1) | ~window(3, -1) & sink(2)",
        "causal & (sink(1) | global([-4, 9])) & documents([])", "~~(causal | sink(0))",
        "dilated(2) | block_dilated(2, 8)", "~heads(causal | sink(1), dense)",
        "sum(causal & segment(8, 1), causal & ~(segment(8, 2) | dilated(1)))",
        "hierarchical([(1, 4, 64), (8, -1, 64)]) & random(1, 2, 3)", "vertical_slash([], [-1, 3])",
        "strided(3, 0, 16) | axial(4, 5) & natten(9, 9, 3)"}) {
    CHECK(Pattern::parse(text).to_string() == text);
  }
  CHECK(Pattern::parse("((causal)&(sink(1)))|((sink(2)))").to_string() ==
        "causal & sink(1) | sink(2)");
}

TEST_CASE("random trees print and parse back to equal trees") {
  Random random(test::seed_of(11));
  for (int i = 0; i < 2000; ++i) {
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(7)), nullptr);
    const Pattern again = Pattern::parse(pattern.to_string());
    CHECK(again == pattern);
    CHECK(again.to_string() == pattern.to_string());
  }
}

TEST_CASE("errors name the column") {
  refused("", 1, "the text ends");
  refused("   ", 4, "the text ends");
  refused("causal &", 9, "the text ends");
  refused("causal & & dense", 10, "'&'");
  refused("causal dense", 8, "'d'");
  refused("(causal", 8, "column 1");
  refused("causal)", 7, "')'");
  refused("cuasal", 1, "did you mean 'causal'");
  refused("windwo(1,2)", 1, "did you mean 'window'");
  refused("quadratic", 1, "known are dense");
  refused("Causal", 1, "did you mean 'causal'");
  refused("window(1)", 9, "','");
  refused("window(1,2", 11, "')'");
  refused("window(-2, 0)", 1, "there is no key in between");
  refused("window(3, -4)", 1, "there is no key in between");
  refused("window(-2000000000000000000, -1)", 1, "left is -2000000000000000000");
  refused("queries(3, 2)", 1, "from 3 to 2");
  refused("keys(0)", 7, "','");
  refused("keys(1, 0)", 1, "from 1 to 0");
  refused("every(0, 0)", 1, "s is 0");
  refused("every(4, 4)", 1, "r is 4; it must be in [0, 3]");
  refused("head_groups(0, causal, dense)", 1, "n is 0");
  refused("head_groups(causal, dense)", 13, "whole number");
  refused("head_groups(2)", 14, "','");
  refused("dense | sink(-1)", 9, "n is -1");
  refused("sink()", 6, "whole number");
  refused("sink(1.5)", 7, "'.'");
  refused("sink(0x10)", 7, "'x'");
  refused("sink(+1)", 6, "'+'");
  refused("sink(- 1)", 6, "'-'");
  refused("sink(99999999999999999999)", 6, "64 bits");
  refused("sink(9223372036854775807)", 1, "2^60");
  refused("global([1,)", 11, "whole number");
  refused("global([1 2])", 11, "']'");
  refused("documents(5)", 11, "'['");
  refused("documents([5,5])", 1, "start 1 is 5");
  refused("causal & documents([7,3])", 10, "ascend");
  refused("dilated(0)", 1, "r is 0");
  refused("causal | block_dilated(2, 0)", 10, "b is 0");
  refused("strided(2, 4)", 13, "','");
  refused("strided(2, -1, 4)", 1, "n is -1");
  refused("random(65537, 0, 4)", 1, "c is 65537; it must be in [0, 65536]");
  refused("random(1, -1, 4)", 1, "seed is -1");
  refused("segment(0, 1)", 1, "w is 0");
  refused("axial(3, 0)", 1, "width is 0");
  refused("natten(8, 8, 4)", 1, "odd");
  refused("natten(8, 4, 5)", 1, "either side");
  refused("vertical_slash([1])", 19, "','");
  refused("vertical_slash([1], 2)", 21, "'['");
  refused("vertical_slash([1], [9223372036854775807])", 1, "slashes: entry 0");
  refused("hierarchical([])", 1, "has no level");
  refused("hierarchical([(1, 2)])", 20, "','");
  refused("hierarchical([(1, 2, 3), (0, 2, 3)])", 1, "stride is 0");
  refused("hierarchical([1])", 15, "'('");
  refused("heads()", 7, "expected a pattern");
  refused("heads(causal, )", 15, "expected a pattern");
  refused("heads(causal dense)", 14, "')'");
  refused("causal & sum(causal, dense)", 1, "inside &");
  refused("heads(dense, sum(causal, dense))", 1, "inside heads");
  refused("dense | ~sum(causal, dense)", 9, "inside ~");
  refused("sum(causal, sum(causal, dense))", 1, "inside another sum");
  refused("preset(bigbrid)", 1, "did you mean 'bigbird'");
  refused("preset(nothing)", 1, "known are local");
  refused("causal(3)", 7, "'('");
  refused("blocks(file)", 8, "'\"'");
  refused("blocks(\"x", 8, "closing");
  refused("blocks(\"\")", 8, "empty");
  refused("blocks(\"a\\n\")", 10, "backslash");
  refused("blocks(\"#12\")", 8, "never in a file");
  refused(std::string("caus\0al", 7), 1, "unknown name 'caus'");
  refused(std::string("causal\0", 7), 7, "byte 0x00");
  refused("causal \xff", 8, "byte 0xff");
}

TEST_CASE("words of later versions are unsupported, not unknown") {
  for (const char* name : {"topk", "softcap", "alibi", "scale", "bias", "sink_logit"}) {
    refused("causal & " + std::string(name) + "(1)", 10, "not supported in this version",
            ErrorCode::kUnsupported);
  }
}

TEST_CASE("hostile nesting and lengths end in errors") {
  for (const char* unit : {"(", "~", "~(", "causal&("}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    CHECK(code_of([&] { Pattern::parse(text); }) == ErrorCode::kParse);
  }
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '(') + "causal" +
           std::string(static_cast<std::size_t>(levels), ')');
  };
  CHECK(Pattern::parse(nested(kMaxDepth - 1)) == causal());
  refused(nested(kMaxDepth), static_cast<std::size_t>(kMaxDepth) + 1, "deeper than 64");

  std::string chain = "causal";
  for (int i = 1; i < kMaxLeaves; ++i) chain += "|causal";
  CHECK(Pattern::parse(chain).node().leaves == kMaxLeaves);
  refused(chain + "|causal", 1, "leaves");
  CHECK(code_of([] { Pattern::parse(std::string(kMaxText + 1, ' ')); }) == ErrorCode::kParse);
}

TEST_CASE("a tree of full depth prints to text that parses") {
  Pattern pattern = causal();
  for (int i = 1; i < kMaxDepth; ++i) {
    pattern = i % 3 == 0 ? ~pattern : i % 3 == 1 ? (pattern & sink(i)) : (pattern | sink(i));
  }
  CHECK(pattern.node().depth == kMaxDepth);
  CHECK(Pattern::parse(pattern.to_string()) == pattern);
  CHECK(code_of([&] { ~pattern; }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("mutated expressions never do more than throw an error") {
  const std::vector<std::string> seeds = {
      "causal & (window(511,0) | global(16))",
      "documents([0, 512, 700]) & ~(sink(4) | dense)",
      "global([1,2,-3]) | prefix(9) & blocks(\"/nowhere/x\")",
      "~~~window(-1, 12345678901)",
      "heads(segment(64, 2), random(3,1,8) | natten(9,9,3)) & preset(longformer)",
      "sum(hierarchical([(1,2,3),(4,-1,6)]), vertical_slash([1,2],[0]), strided(8,1,64))"};
  const std::string alphabet = "()[]&|~,-\" \\0123456789acdegilnoruwx.\n\xff";
  Random random(test::seed_of(5));
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random.below(static_cast<std::uint32_t>(seeds.size()))];
    for (std::uint32_t change = random.below(5); change > 0 && !text.empty(); --change) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
      const char letter = alphabet[random.below(static_cast<std::uint32_t>(alphabet.size()))];
      switch (random.below(4)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        case 2:
          text.erase(at, 1 + random.below(4));
          break;
        default:
          text.insert(at, text.substr(random.below(static_cast<std::uint32_t>(text.size())), 9));
      }
    }
    try {
      const Pattern pattern = parse(text, [](const std::string&) { return sink(3); });
      CHECK(parse(pattern.to_string(), [](const std::string&) { return sink(3); }) == pattern);
      ++parsed;
    } catch (const Error& error) {
      const bool typed =
          error.code() == ErrorCode::kParse || error.code() == ErrorCode::kUnsupported;
      CHECK_MESSAGE(typed, text);
    }
  }
  CHECK(parsed > 1000);
}

TEST_CASE("blocks reads a file, keeps its name, and passes on what is wrong with it") {
  test::ScratchFolder folder;
  Random random(test::seed_of(3));
  const std::string path = folder / "a \"quoted\\name\".safetensors";
  const BlockLayout layout = test::random_layout(&random, 90, 120);
  save_layout(layout, path);
  const Pattern pattern = causal() & blocks(path);
  CHECK(Pattern::parse(pattern.to_string()) == pattern);
  CHECK(pattern == (causal() & blocks(layout)));
  CHECK(blocks(layout).to_string().substr(0, 9) == "blocks(\"#");
  refused("causal | blocks(\"/nowhere/x\")", 10, "/nowhere/x", ErrorCode::kFile);
  const std::string bad = folder / "bad";
  base::FileSystem files;
  base::write_file_atomically(files, bad, std::as_bytes(std::span("no layout")));
  refused("blocks(\"" + bad + "\")", 1, bad, ErrorCode::kInvalidFile);
}

TEST_CASE("functions refuse what the grammar refuses") {
  CHECK(code_of([] { window(-2, 0); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { window(0, INT64_MAX); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { sink(-1); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { global(-1); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { global({INT64_MIN}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { documents({3, 3}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { blocks(std::shared_ptr<const BlockLayout>()); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([] { blocks(BlockLayout{}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { Pattern(std::shared_ptr<const Node>()); }) == ErrorCode::kInvalidArgument);
  Random random(test::seed_of(1));
  const Pattern two = blocks(test::random_layout(&random, 20, 20, 2));
  const Pattern three = blocks(test::random_layout(&random, 20, 20, 3));
  CHECK(two.heads() == 2);
  CHECK(code_of([&] { two& three; }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { two.visible(2, 0, 0); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { causal().visible(-1, 0, 0); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("leaves mean what the language says, at the ends of the number range too") {
  CHECK(causal().visible(0, 5, 5));
  CHECK_FALSE(causal().visible(0, 5, 6));
  CHECK(causal().visible(0, -5, -6));
  CHECK(window(-3, 10).visible(0, 5, 8));
  CHECK_FALSE(window(-3, 10).visible(0, 5, 7));
  CHECK(window(-3, 10).visible(0, 5, 15));
  CHECK_FALSE(window(-3, 10).visible(0, 5, 16));
  CHECK(window(-1, -4).visible(0, 5, 1));
  CHECK_FALSE(window(-1, -4).visible(0, 5, 2));
  CHECK(queries(-2, 3).visible(0, -2, 900));
  CHECK_FALSE(queries(-2, 3).visible(0, 3, 0));
  CHECK_FALSE(queries(4, 4).visible(0, 4, 4));
  CHECK(keys(-2, 3).visible(0, 900, 2));
  CHECK_FALSE(keys(-2, 3).visible(0, 0, -3));
  CHECK(every(5, 3).visible(0, 0, -7));
  CHECK_FALSE(every(5, 3).visible(0, 3, -8));
  const Pattern grouped = head_groups(3, {causal(), dense()});
  for (const std::int64_t head : {0, 1, 2, 6, 8, 12}) CHECK_FALSE(grouped.visible(head, 0, 1));
  for (const std::int64_t head : {3, 4, 5, 9, 11}) CHECK(grouped.visible(head, 0, 1));
  CHECK(grouped.distinct_heads(100) == 6);
  CHECK(grouped.distinct_heads(4) == 4);
  CHECK(head_groups(1, {causal(), dense()}) == heads({causal(), dense()}));
  CHECK_FALSE(grouped == head_groups(2, {causal(), dense()}));
  CHECK(head_groups(7, {causal()}) == causal());
  CHECK(window(2, 1).visible(0, 10, 8));
  CHECK_FALSE(window(2, 1).visible(0, 10, 7));
  CHECK(window(2, 1).visible(0, 10, 11));
  CHECK_FALSE(window(2, 1).visible(0, 10, 12));
  CHECK(window(-1, 0).visible(0, INT64_MAX, INT64_MIN));
  CHECK_FALSE(window(kMaxNumber, -1).visible(0, INT64_MAX, INT64_MIN));
  CHECK_FALSE(window(-1, kMaxNumber).visible(0, INT64_MIN, INT64_MAX));
  CHECK(sink(3).visible(0, 100, 2));
  CHECK(sink(0).visible(0, 100, -1));
  CHECK_FALSE(sink(3).visible(0, 100, 3));
  CHECK(global(3).visible(0, 2, 100));
  CHECK(global(3).visible(0, -7, 100));
  CHECK_FALSE(global(3).visible(0, 3, 3));
  CHECK(global({4, 8}).visible(0, 8, 0));
  CHECK(global({4, 8}).visible(0, 0, 4));
  CHECK_FALSE(global({4, 8}).visible(0, 5, 7));
  const Pattern three = documents({0, 10});
  CHECK(three.visible(0, -1, -9));
  CHECK_FALSE(three.visible(0, -1, 0));
  CHECK(three.visible(0, 0, 9));
  CHECK(three.visible(0, 9, 0));
  CHECK_FALSE(three.visible(0, 9, 10));
  CHECK(three.visible(0, 10, 1000));
  CHECK(documents({}).visible(0, -1, 1));
}

}  // namespace
}  // namespace annulus::pattern
