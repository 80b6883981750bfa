#include "jit/kernel_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "annulus/types.h"
#include "jit/fake_tables.h"
#include "jit/missing_kernel.h"
#include "support/faulty_files.h"

namespace annulus::jit {
namespace {

using test::FakeCounts;
using test::ScratchFolder;

KernelSpec spec(int number) {
  return {
      .family = "sample",
      .arch = {80, '\0'},
      .file = "kernels/sample.cu",
      .entry = "sample",
      .structs = {
          {.name = "Shape", .constants = {Constant::integer("kNumber", number)}, .functions = {}}}};
}

std::shared_ptr<const TemplateSet> templates() {
  return std::make_shared<const TemplateSet>(
      std::map<std::string, std::string>{{"kernels/sample.cu", "// a kernel"}});
}

std::shared_ptr<const Compiler> compiler(ImageKind kind = ImageKind::kPtx) {
  return std::make_shared<const Compiler>(test::fake_nvrtc(), templates(), kind);
}

std::shared_ptr<DiskCache> disk(const std::string& folder) {
  return std::make_shared<DiskCache>(DiskCacheOptions{.folder = folder});
}

TEST_CASE("a kernel is compiled, then found in memory, then by the next process on disk") {
  FakeCounts::clear();
  ScratchFolder scratch;
  {
    KernelCache cache(test::fake_context(), compiler(), disk(scratch / "cache"));
    const KernelLookup cold = cache.get(spec(1));
    CHECK(cold.origin == Origin::kCompiled);
    CHECK(cold.compile_ms > 0);
    CHECK(cold.kernel->symbol == "_Zannulus::kernels::sample<annulus::kernels::Shape>");
    CHECK(cold.kernel->request.source.find("kNumber = 1") != std::string::npos);
    const KernelLookup warm = cache.get(spec(1));
    CHECK(warm.origin == Origin::kMemory);
    CHECK(warm.kernel == cold.kernel);
    CHECK(warm.compile_ms == 0);
    CHECK(cache.get(spec(2)).kernel != cold.kernel);
    CHECK(cache.size() == 2);
  }
  CHECK(FakeCounts::get().compiled == 2);
  CHECK(FakeCounts::get().unloaded == 2);
  KernelCache next(test::fake_context(), compiler(), disk(scratch / "cache"));
  const KernelLookup found = next.get(spec(1));
  CHECK(found.origin == Origin::kDisk);
  CHECK(found.compile_ms == 0);
  CHECK(found.load_ms > 0);
  CHECK(FakeCounts::get().compiled == 2);
  // A cubin of the same spec is a different kernel.
  KernelCache cubins(test::fake_context(), compiler(ImageKind::kCubin), disk(scratch / "cache"));
  CHECK(cubins.get(spec(1)).origin == Origin::kCompiled);
}

TEST_CASE("contexts keep modules of their own and share what is compiled") {
  FakeCounts::clear();
  ScratchFolder scratch;
  const auto shared_compiler = compiler();
  const auto shared_disk = disk(scratch / "cache");
  KernelCache first(test::fake_context(), shared_compiler, shared_disk);
  KernelCache second(test::fake_context(), shared_compiler, shared_disk);
  const KernelRequest request = shared_compiler->prepare(spec(1));
  CHECK(first.get(request).origin == Origin::kCompiled);
  CHECK(second.get(request).origin == Origin::kDisk);
  CHECK(first.get(request).kernel != second.get(request).kernel);
  CHECK(FakeCounts::get().compiled == 1);
  CHECK(FakeCounts::get().loaded == 2);
}

TEST_CASE("threads that want one kernel wait for one compilation") {
  FakeCounts::clear();
  KernelCache cache(test::fake_context(), compiler(), disk(""));
  std::atomic<int> compiled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        compiled += cache.get(spec((i + t) % 8)).origin == Origin::kCompiled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(compiled == 8);
  CHECK(FakeCounts::get().compiled == 8);
  CHECK(FakeCounts::get().loaded == 8);
}

TEST_CASE("a kernel on disk that the driver refuses is compiled anew") {
  FakeCounts::clear();
  ScratchFolder scratch;
  const auto kernels = disk(scratch / "cache");
  KernelCache(test::fake_context(), compiler(), kernels).get(spec(1));
  FakeCounts::get().refuse_loads = 1;
  KernelCache cache(test::fake_context(), compiler(), kernels);
  CHECK(cache.get(spec(1)).origin == Origin::kCompiled);
  CHECK(FakeCounts::get().compiled == 2);
  // If the driver rejects a kernel that was just compiled, that is an error, and the next call
  // tries again.
  KernelCache other(test::fake_context(), compiler(), disk(""));
  FakeCounts::get().refuse_loads = 1;
  CHECK_THROWS_AS(other.get(spec(1)), Error);
  CHECK(other.size() == 0);
  CHECK(other.get(spec(1)).origin == Origin::kCompiled);
}

TEST_CASE("what does not compile is an error each time and stays out of the cache") {
  FakeCounts::clear();
  ScratchFolder scratch;
  const auto kernels = disk(scratch / "cache");
  KernelCache cache(test::fake_context(), compiler(), kernels);
  FakeCounts::get().broken_source = true;
  for (int i = 0; i < 2; ++i) {
    try {
      cache.get(spec(1));
      FAIL_CHECK("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCompile);
      CHECK(std::string(error.what()).find("a fake log") != std::string::npos);
    }
  }
  CHECK(FakeCounts::get().compiled == 2);
  CHECK(kernels->list().empty());
  FakeCounts::get().broken_source = false;
  CHECK(cache.get(spec(1)).origin == Origin::kCompiled);
}

TEST_CASE("a compiler without memory left is no error of the source") {
  FakeCounts::clear();
  FakeCounts::get().no_memory = true;
  try {
    compiler()->compile(spec(1));
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK(std::string(error.what()).find("out of host memory") != std::string::npos);
  }
}

TEST_CASE("an older NVRTC is asked again without the options it does not know, once") {
  FakeCounts::clear();
  FakeCounts::get().old_compiler = true;
  const auto old = compiler();
  old->compile(spec(1));
  CHECK(FakeCounts::get().compiled == 2);
  old->compile(spec(2));
  CHECK(FakeCounts::get().compiled == 3);
}

std::shared_ptr<const Compiler> no_compiler() {
  auto missing = std::make_shared<abi::NvrtcLibrary>();
  missing->report.problem = "there is no NVRTC; install it";
  return std::make_shared<const Compiler>(missing, templates(), ImageKind::kPtx);
}

// Puts a kernel of spec(1), made by the given compiler, into a folder. Its symbol names the
// compiler.
void ship(const std::string& folder, const std::string& made_by) {
  DiskCache to({.folder = folder});
  const KernelKey key(compiler()->prepare(spec(1)).key.wanted, made_by);
  to.store(key, {.kind = ImageKind::kPtx,
                 .symbol = made_by,
                 .image = {std::byte{'p'}, std::byte{0}},
                 .usage = {}});
}

TEST_CASE("a kernel comes from the cache, then from folders, then from the compiler") {
  FakeCounts::clear();
  ScratchFolder scratch;
  const std::string own = compiler()->identity();
  const auto symbol = [&](const std::shared_ptr<const Compiler>& by, const std::string& cache) {
    KernelCache kernels(test::fake_context(), by, disk(cache),
                        std::make_shared<KernelFolders>(std::vector{scratch / "ahead"}));
    const KernelLookup found = kernels.get(spec(1));
    CHECK(found.compiled_ahead == (found.origin == Origin::kDisk && cache != scratch / "cache"));
    return found.kernel->symbol;
  };
  const std::string compiled = "_Zannulus::kernels::sample<annulus::kernels::Shape>";
  CHECK(symbol(compiler(), "") == compiled);
  // A kernel of any compiler is preferred to compiling, because the user put it there. The newest
  // kernel that the driver (13.0) accepts is used.
  for (const char* by : {"12.9 (a)", "13.0 (b)", "14.0 (c)"}) ship(scratch / "ahead", by);
  CHECK(symbol(compiler(), "") == "13.0 (b)");
  CHECK(symbol(no_compiler(), "") == "13.0 (b)");
  // A kernel of exactly this compiler is preferred to these.
  ship(scratch / "ahead", own);
  CHECK(symbol(compiler(), "") == own);
  ship(scratch / "cache", own);
  FakeCounts::clear();
  CHECK(symbol(compiler(), scratch / "cache") == own);
  CHECK(FakeCounts::get().compiled == 0);
}

TEST_CASE("without a compiler the cache serves what another one has made") {
  FakeCounts::clear();
  ScratchFolder scratch;
  ship(scratch / "cache", "12.9 (a)");
  {
    KernelCache kernels(test::fake_context(), no_compiler(), disk(scratch / "cache"));
    const KernelLookup found = kernels.get(spec(1));
    CHECK(found.kernel->symbol == "12.9 (a)");
    CHECK_FALSE(found.compiled_ahead);
  }
  // With a compiler it does not: the compiler may have been changed to get other kernels.
  KernelCache kernels(test::fake_context(), compiler(), disk(scratch / "cache"));
  CHECK(kernels.get(spec(1)).origin == Origin::kCompiled);
  CHECK(FakeCounts::get().compiled == 1);
}

TEST_CASE("a kernel that the driver refuses leads on to the next, and then to the compiler") {
  ScratchFolder scratch;
  ship(scratch / "ahead", compiler()->identity());
  ship(scratch / "ahead", "13.0 (b)");
  ship(scratch / "ahead", "12.9 (a)");
  const auto symbol = [&](int refusals, const std::shared_ptr<const Compiler>& by) {
    FakeCounts::clear();
    FakeCounts::get().refuse_loads = refusals;
    const auto context = test::fake_context();
    KernelCache kernels(context, by, disk(""),
                        std::make_shared<KernelFolders>(std::vector{scratch / "ahead"}));
    const std::string taken = kernels.get(spec(1)).kernel->symbol;
    CHECK(FakeCounts::get().loaded == refusals + 1);
    return taken;
  };
  CHECK(symbol(0, compiler()) == compiler()->identity());
  CHECK(symbol(1, compiler()) == "13.0 (b)");
  CHECK(symbol(2, compiler()) == "12.9 (a)");
  CHECK(symbol(3, compiler()).starts_with("_Z"));
  CHECK(FakeCounts::get().compiled == 1);
  CHECK(symbol(1, no_compiler()) == "12.9 (a)");
}

TEST_CASE("a kernel that is nowhere and cannot be compiled is told with all that helps") {
  FakeCounts::clear();
  ScratchFolder scratch;
  ship(scratch / "ahead", "13.0 (b)");
  KernelCache kernels(
      test::fake_context(), no_compiler(), disk(scratch / "cache"),
      std::make_shared<KernelFolders>(std::vector{scratch / "ahead", scratch / "gone"}));
  const auto message = [&](int number) -> std::string {
    KernelSpec wanted = spec(number);
    wanted.config = "m64 n64";
    try {
      kernels.get(wanted);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kLibrary);
      return error.what();
    }
    FAIL_CHECK("no error");
    return "";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  std::string text;
  {
    const KernelsFor outer([] { return "something else"; });
    const KernelsFor inner([] { return "the shape `--heads 8`"; });
    text = message(2);
  }
  for (const std::string& part :
       {std::string("sample (m64 n64) for sm_80"), std::string("the shape `--heads 8`"),
        "'" + scratch / "ahead" + "' (kernels: 1, of this version for compute_80: 1)",
        "'" + scratch / "gone" + "' (which does not exist)", "the cache '" + scratch / "cache",
        std::string("there is no NVRTC; install it"), std::string("nvidia-cuda-nvrtc-cu12"),
        std::string("tools/get_nvrtc"), std::string("ANNULUS_LIBRARY_PATH"),
        std::string("annulus warm --shapes")}) {
    has(text, part);
  }
  CHECK(message(2).find("wanted for") == std::string::npos);  // the caller did not describe it
  // If the description cannot be made, it is left out.
  const KernelsFor broken([]() -> std::string { throw std::bad_alloc(); });
  CHECK(message(2).find("wanted for") == std::string::npos);
  FakeCounts::get().refuse_loads = 1;
  has(message(1), "The driver refuses the one that was found");
  CHECK(kernels.get(spec(1)).kernel->symbol == "13.0 (b)");
}

TEST_CASE("a library that is not usable compiles nothing and says its problem") {
  auto missing = std::make_shared<abi::NvrtcLibrary>();
  missing->report.problem = "there is no NVRTC; install it";
  const Compiler none(missing, TemplateSet::embedded(), ImageKind::kPtx);
  CHECK_FALSE(none.compiles());
  CHECK(none.identity().empty());
  try {
    none.compile(spec(1));
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    CHECK(std::string(error.what()).find("install it") != std::string::npos);
  }
}

}  // namespace
}  // namespace annulus::jit
