// What a kernel costs before its first launch: from the compiler, from disk, from memory.

#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/fail.h"
#include "harness.h"
#include "jit/kernel_cache.h"

namespace {

using namespace annulus;
using jit::Constant;

// Dense causal attention without carried state.
jit::KernelSpec causal(int dim, int rows, int columns, int warps, int stages) {
  return {.family = "mma_forward",
          .arch = {80, '\0'},
          .file = "kernels/mma_forward.cu",
          .entry = "mma_forward",
          .structs = {
              {.name = "Shape",
               .constants =
                   {Constant::type("Element", "tile::Bfloat16"), Constant::integer("kDimQk", dim),
                    Constant::integer("kDimV", dim), Constant::integer("kTileRows", rows),
                    Constant::integer("kTileColumns", columns), Constant::integer("kWarps", warps),
                    Constant::integer("kStages", stages), Constant::integer("kResident", 1),
                    Constant::integer("kScore", 0), Constant::boolean("kQueryInRegisters", false),
                    Constant::boolean("kCarryIn", false), Constant::boolean("kCarryOut", false)},
               .functions = {}},
              {.name = "Mask",
               .constants = {Constant::boolean("kInLoop", false)},
               .functions = {{"template <typename M> bool visible(const M& m, int q, int k)",
                              "m.causal(q, k)"}}}}};
}

// `clock` is the processor time of the process where one thread computes and nothing waits: on an
// idle machine it is the wall time, and what other programs take does not count.
double milliseconds(double (*clock)(), const std::function<void()>& action) {
  const double start = clock();
  action();
  return (clock() - start) * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("jit_bench", argc, argv);
  const auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(base::read_environment())));
  const auto templates = jit::TemplateSet::embedded();
  const jit::Compiler cubin(nvrtc, templates, jit::ImageKind::kCubin);
  const jit::Compiler ptx(nvrtc, templates, jit::ImageKind::kPtx);

  const jit::KernelSpec d64 = causal(64, 128, 64, 4, 2);
  const jit::KernelSpec d128 = causal(128, 128, 32, 4, 2);
  const jit::KernelSpec d256 = causal(256, 128, 64, 8, 1);
  const auto compile = [&](const jit::Compiler& compiler, const jit::KernelSpec& spec) {
    return [&compiler, &spec] {
      return milliseconds(bench::process_seconds, [&] { compiler.compile(spec); });
    };
  };
  bench.add({"compile to cubin, D64", "ms", 190, true}, compile(cubin, d64));
  bench.add({"compile to cubin, D128", "ms", 260, true}, compile(cubin, d128));
  bench.add({"compile to cubin, D256", "ms", 430, true}, compile(cubin, d256));
  bench.add({"compile to PTX, D128", "ms", 0, true}, compile(ptx, d128));

  std::string folder = (std::filesystem::temp_directory_path() / "annulus-bench-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  jit::DiskCache disk({.folder = folder});
  const jit::KernelRequest request = cubin.prepare(d128);
  const jit::CompiledKernel kernel = cubin.compile(request);
  disk.store(request.key, kernel);
  bench.add({"load from disk, read and verified", "ms", 1, true}, [&] {
    return milliseconds(bench::wall_seconds, [&] {
      if (!disk.find(request.key)) base::fail(ErrorCode::kInternal, "the kernel is not on disk");
    });
  });
  bench.add({"store to disk", "ms", 0, true}, [&] {
    return milliseconds(bench::wall_seconds, [&] { disk.store(request.key, kernel); });
  });
  bench.add({"spec to request", "us", 0, true},
            [&] { return milliseconds(bench::wall_seconds, [&] { cubin.prepare(d128); }) * 1e3; });

  const int code = bench.run();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
