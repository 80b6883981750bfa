#include "jit/templates.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "annulus/types.h"
#include "support/faulty_files.h"
#include "support/replaced_new.h"

namespace annulus::jit {
namespace {

using test::ScratchFolder;

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST_CASE("the embedded set is the folder of the source tree") {
  const auto embedded = TemplateSet::embedded();
  const auto folder = TemplateSet::from_folder(ANNULUS_TEMPLATES);
  CHECK(embedded->files() == folder->files());
  CHECK(embedded->digest() == folder->digest());
  CHECK(embedded->contains("params/attention_params.h"));
  CHECK_FALSE(embedded->contains("README.md"));
}

TEST_CASE(
    "comments and indentation of a folder's templates are left out, and lines keep their numbers") {
  const ScratchFolder scratch;
  write(scratch.path() + "/a.cuh",
        "  first\n\n    int a;  // a comment\n  // one more\nint* b = \"// text\";");
  write(scratch.path() + "/block.cuh", "  int a;  /* kept */\n  // kept\n");
  write(scratch.path() + "/raw.cuh", "auto a = R\"(\n  // kept)\";\n");
  const auto set = TemplateSet::from_folder(scratch.path());
  CHECK(set->files().at("a.cuh") == "  first\n\nint a;\n\nint* b = \"// text\";");
  CHECK(set->files().at("block.cuh") == "  int a;  /* kept */\n  // kept\n");
  CHECK(set->files().at("raw.cuh") == "auto a = R\"(\n  // kept)\";\n");
}

TEST_CASE("the digest sees every name and every byte, and not the order") {
  std::set<base::Digest> digests;
  using Files = std::map<std::string, std::string>;
  for (const Files& files :
       {Files{{"a.cuh", "x"}}, Files{{"a.cuh", "y"}}, Files{{"b.cuh", "x"}}, Files{{"a.cuh", ""}},
        Files{{"a.cuh", "x"}, {"b.cuh", ""}}, Files{{"a.cuh", ""}, {"b.cuh", "x"}},
        Files{{"a.cuh", "1\nxb.cuh 0\n"}}, Files{{"a.cuh", "x\n"}}}) {
    digests.insert(TemplateSet(files).digest());
  }
  CHECK(digests.size() == 8);
}

TEST_CASE("names stay inside the set") {
  for (const char* name : {"", "/a.cuh", "../a.cuh", "a/../../b.cuh", "a b", "a\"b", "a\nb"}) {
    CAPTURE(name);
    const std::map<std::string, std::string> files{{name, "x"}};
    CHECK_THROWS_AS(TemplateSet{files}, Error);
  }
}

TEST_CASE("includes of the set become absolute, all others and the line numbers stay") {
  const TemplateSet set({{"tile/a.cuh", ""}, {"b.h", ""}});
  CHECK(with_virtual_includes("#include \"tile/a.cuh\"\n#include \"c.h\"\n  #include \"b.h\"\nx\n"
                              "// #include \"b.h\"\n#include \"b.h\" // why\n#include <b.h>",
                              set) ==
        "#include \"/annulus/tile/a.cuh\"\n#include \"c.h\"\n  #include \"b.h\"\nx\n"
        "// #include \"b.h\"\n#include \"/annulus/b.h\" // why\n#include <b.h>");
  CHECK(with_virtual_includes("", set).empty());
  CHECK(with_virtual_includes("#include \"", set) == "#include \"");
}

TEST_CASE("a folder stands in for the embedded files") {
  ScratchFolder folder;
  write(folder / "tile/a.cuh", "int a;");
  write(folder / "kernels/b.cu", "int b;");
  write(folder / "README.md", "no template");
  const auto set = TemplateSet::from_folder(folder.path());
  CHECK(set->files() ==
        std::map<std::string, std::string>{{"kernels/b.cu", "int b;"}, {"tile/a.cuh", "int a;"}});
  CHECK(TemplateSet::from_folder(folder.path() + "/")->digest() == set->digest());
}

TEST_CASE("a folder that is none, or holds no templates, is refused") {
  ScratchFolder folder;
  CHECK_THROWS_AS(TemplateSet::from_folder(folder.path()), Error);
  CHECK_THROWS_AS(TemplateSet::from_folder(folder / "missing"), Error);
  write(folder / "big.cuh", std::string((1 << 20) + 1, ' '));
  CHECK_THROWS_AS(TemplateSet::from_folder(folder.path()), Error);
}

TEST_CASE("an allocation that fails while templates are read from a folder is bad_alloc") {
  const test::ScratchFolder folder;
  std::filesystem::create_directories(folder / "a/b");
  for (const char* name : {"one.cuh", "a/two.cu", "a/b/three.h"}) {
    std::ofstream(folder / name) << "// a template";
  }
  int failures = 0;
  for (int n = 0;; ++n) {
    REQUIRE(n < 10'000);
    bool thrown = false;
    const bool failed = test::with_failing_new(n, [&] {
      try {
        TemplateSet::from_folder(folder.path());
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    });
    CHECK(thrown == failed);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 20);
}

}  // namespace
}  // namespace annulus::jit
