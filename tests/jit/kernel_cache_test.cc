#include "jit/kernel_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "annulus/error.h"
#include "jit/fake_tables.h"
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

std::shared_ptr<const Compiler> compiler(ImageKind kind = ImageKind::kPtx) {
  return std::make_shared<const Compiler>(
      test::fake_nvrtc(),
      std::make_shared<const TemplateSet>(
          std::map<std::string, std::string>{{"kernels/sample.cu", "// a kernel"}}),
      kind);
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
  // A cubin of the same spec is another kernel.
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
  // Fresh from the compiler a refusal is an error, and the next call tries again.
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
  CHECK(kernels->contents().kernels == 0);
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

TEST_CASE("a library that is not usable is refused with its problem") {
  auto missing = std::make_shared<abi::NvrtcLibrary>();
  missing->report.problem = "there is no NVRTC; install it";
  try {
    Compiler(missing, TemplateSet::embedded(), ImageKind::kPtx);
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    CHECK(std::string(error.what()).find("install it") != std::string::npos);
  }
}

}  // namespace
}  // namespace annulus::jit
