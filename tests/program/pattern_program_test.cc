// annulus pattern as a user sees it.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "annulus/layout.h"
#include "program/run_program.h"

namespace {

using namespace annulus;
using test::annulus_with;
using test::json_of;
using test::read;
using test::refused;

const std::string kBand = " -p 'causal & window(31,0)' -S 80 --block 16x16";

TEST_CASE("pattern draw prints a picture or writes one") {
  const test::ScratchFolder folder;
  CHECK(annulus_with("pattern draw" + kBand).out ==
        "head 0: 12 of 5 x 5 blocks of 16 x 16\n+....\n#+...\n+#+..\n.+#+.\n..+#+\n");
  const base::Json json = json_of("pattern draw --json --cells 3" + kBand);
  CHECK(json["layout"]["seq_k"] == 80);
  CHECK(json["picture"].get<std::string>().find("2 x 2 blocks") != std::string::npos);
  const std::string svg = folder / "x.svg";
  CHECK(annulus_with("pattern draw --svg " + svg + kBand).code == 0);
  CHECK(read(svg).starts_with("<svg "));
}

TEST_CASE("pattern stats sets blocks and pairs beside each other") {
  const base::Json json = json_of("pattern stats --json --layers 3" + kBand);
  CHECK(json["kept"] == 12);
  CHECK(json["partial"] == 8);
  CHECK(json["block_density"] == doctest::Approx(12.0 / 25));
  CHECK(json["density"] == doctest::Approx((80.0 * 32 - 31 * 16) / 6400));
  CHECK(json["overhead"].get<double>() > 1);
  CHECK(json["reachability"].size() == 3);
  const test::Outcome text = annulus_with("pattern stats --layers 2" + kBand);
  CHECK(text.code == 0);
  CHECK(text.out.find("0.4800 of all blocks") != std::string::npos);
  CHECK(text.out.find("after 2 layers") != std::string::npos);
}

TEST_CASE("layouts go out in every format and come back") {
  const test::ScratchFolder folder;
  const std::string own = folder / "own.layout";
  CHECK(annulus_with("pattern export " + own + kBand).code == 0);
  CHECK(load_layout(own) == make_layout(causal() & window(31, 0), {16, 16, 80, 80}));
  for (const std::string format : {"npy", "raw", "csr", "coo", "bitset", "topk", "flex"}) {
    CAPTURE(format);
    const std::string there = folder / format;
    const std::string back = folder / "back";
    CHECK(annulus_with("pattern export -i " + own + " --to " + format + " " + there).code == 0);
    const base::Json json = json_of("pattern import --json --from " + format +
                                    " --block 16x16 -S 80 " + there + " " + back);
    CHECK(json["kept"] == 12);
    CHECK(load_layout(back) == load_layout(own));
    const base::Json same = json_of("pattern diff --json " + own + " " + back);
    CHECK(same["equal"] == true);
  }
  const std::string other = folder / "other.layout";
  CHECK(annulus_with("pattern export " + other + " -p causal -S 80 --block 16x16").code == 0);
  const test::Outcome apart = annulus_with("pattern diff --lines 1 " + own + " " + other);
  CHECK(apart.code == 0);
  CHECK(apart.out ==
        "head 0 row 2: ~0\n2 more rows\n0 blocks removed, 3 added, 3 with another flag\n");
  // If the layout is a leaf of a pattern, it gives the same statistics.
  const base::Json again =
      json_of("pattern stats --json -S 80 --block 16x16 -p 'blocks(\"" + own + "\")'");
  CHECK(again["kept"] == 12);
}

TEST_CASE("pattern list and presets say what there is, and patterns take it") {
  const base::Json words = json_of("pattern list --json")["words"];
  CHECK(words.size() == pattern_words().size());
  const std::string list = annulus_with("pattern list").out;
  for (const base::Json& word : words) {
    CHECK(list.find("\n" + word["form"].get<std::string>()) != std::string::npos);
    CHECK(list.find("  " + word["meaning"].get<std::string>() + "\n") != std::string::npos);
  }
  const std::string presets = annulus_with("pattern presets").out;
  for (const base::Json& preset : json_of("pattern presets --json")["presets"]) {
    const std::string name = preset["name"].get<std::string>();
    CHECK(presets.find("preset(" + name + ") ") != std::string::npos);
    CHECK(presets.find("  " + preset["expression"].get<std::string>() + "\n") != std::string::npos);
    CHECK(preset["density"].size() == 3);
  }
  refused("pattern stats -p 'causal & bigbird'", 2, "did you mean 'preset(bigbird)'?");
  refused("pattern stats -p 'sliding_window(5, 0)'", 2, "did you mean 'window'?");
  refused("pattern stats -p 'preset(bigbrid)'", 2, "did you mean 'bigbird'?");
}

TEST_CASE("heads that differ are drawn, counted and written, each under its own number") {
  const test::ScratchFolder folder;
  const std::string two = " -p 'heads(dense, causal)' -S 256 --block 64x64";
  CHECK(annulus_with("pattern draw --head 1" + two).out.starts_with("head 1: 10 of 4 x 4"));
  CHECK(annulus_with("pattern draw --head 0" + two).out.starts_with("head 0: 16 of 4 x 4"));
  refused("pattern draw --head 2" + two, 2, "--head is 2");
  refused("pattern draw --head 5 -p causal", 2, "--head is 5");
  CHECK(annulus_with("pattern draw --head 5 -H 8 -p causal -S 256 --block 64x64").code == 0);
  const std::string file = folder / "two.layout";
  CHECK(json_of("pattern export --json " + file + two)["layout"]["heads"] == 2);
  CHECK(load_layout(file) ==
        make_layout(Pattern::parse("heads(dense, causal)"), {64, 64, 256, 256, 2}));
  // This preset's heads see different residues, as its documentation states.
  const base::Json dilated = json_of("pattern stats --json -p 'preset(dilated)' -S 4096");
  const base::Json twelve = json_of("pattern stats --json -H 12 -p 'preset(dilated)' -S 4096");
  CHECK(dilated["density"] == twelve["density"]);
  CHECK(dilated["kept"] == twelve["kept"]);
  CHECK(dilated["density"] == doctest::Approx(0.1485).epsilon(1e-3));
  // The number of rows is the given one, even if it is 0.
  CHECK(json_of("pattern stats --json -p causal -S 0")["layout"]["seq_q"] == 0);
}

TEST_CASE("a file that is read is not written over, by whatever name") {
  const test::ScratchFolder folder;
  const std::string file = folder / "a.layout";
  CHECK(annulus_with("pattern export " + file + kBand).code == 0);
  const std::string whole = read(file);
  const std::string link = folder / "link";
  std::filesystem::create_symlink(file, link);
  const std::string hard = folder / "hard";
  std::filesystem::create_hard_link(file, hard);
  for (const std::string& output : {file, link, hard, folder.path() + "/./a.layout"}) {
    refused("pattern export -i " + file + " --to npy " + output, 2, "would be lost");
    refused("pattern import " + file + " --from layout " + output, 2, "would be lost");
    refused("pattern draw -i " + file + " --svg " + output, 2, "would be lost");
    refused("pattern export -S 80 --block 16x16 -p 'causal & blocks(\"" + file + "\")' " + output,
            2, "would be lost");
  }
  CHECK(read(file) == whole);
}

TEST_CASE("pattern refuses in one line what it cannot do") {
  const test::ScratchFolder folder;
  const std::string file = folder / "x";
  refused("pattern", 2, "subcommand");
  refused("pattern paint", 2, "'paint' is not a subcommand; use list, presets, draw, ");
  refused("pattern draw", 2, "give --pattern with sizes, or --input");
  refused("pattern draw -p causal -i " + file, 2, "not both");
  refused("pattern draw -p 'causal &'", 2, "column");
  refused("pattern draw -p causal --block 0x8", 2, "--block is 0x8");
  refused("pattern draw -p causal --block 8xx", 2, "whole number");
  refused("pattern draw -p causal -S -5", 2, "Sq is -5");
  refused("pattern draw -p causal -S 9e9", 2, "not a whole number");
  refused("pattern draw -p causal --cells 9999", 2, "9999 cells");
  refused("pattern stats -p causal --layers 5000", 2, "5000 layers");
  for (const char* layers : {"-3", "0"}) {
    refused("pattern stats -p causal --layers " + std::string(layers), 2, "--layers");
  }
  refused("pattern draw -p causal --from csr", 2, "excludes --");
  refused("pattern draw -i " + file + " -S 0", 2, "--seq is 0");
  refused("pattern stats -p causal -S 1048576 --block 16x16", 2, "blocks");
  refused("pattern draw -p causal --svg " + file + ".png", 2, "name it .svg");
  refused("pattern draw -i " + file, 5, "cannot open");
  refused("pattern draw -p causal --svg " + file + "/no/such", 5, "");
  refused("pattern import " + file + " " + file + "2 --from bsr", 2,
          "'bsr' is not a format of layouts");
  { std::ofstream(file) << "no layout at all, and far too short"; }
  refused("pattern draw -i " + file, 5, "the header of a block layout has 128");
  refused("pattern import " + file + " " + file + "2 --from csr", 5, "");
  refused("pattern import " + file + " " + file + "2 --from npy", 2, "as in --block 128x128");
  refused("pattern import " + file + " " + file + "2 --from raw --block 8", 2, "as in --seq 4096");
  { std::ofstream(folder / "other") << std::string(200, 'x'); }
  refused("pattern import " + (folder / "other") + " " + file + "2", 5,
          "annulus pattern import with --from");
  refused("pattern import " + file + " " + file + "2 --from raw --block 8 -S 64", 5,
          "the mask has 35 entries");
  refused("pattern diff " + file, 2, "annulus pattern diff: second is required");
  refused("pattern export -p causal --to flashinfer " + file, 2, "partial");
  CHECK(read(file) == "no layout at all, and far too short");
}

}  // namespace
