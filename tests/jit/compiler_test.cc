#include "jit/compiler.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "annulus/types.h"
#include "support/faulty_files.h"
#include "support/nvrtc.h"

namespace annulus::jit {
namespace {

using test::nvrtc;

// A small kernel with its own template, in the form of all kernels.
std::shared_ptr<const TemplateSet> sample_templates() {
  return std::make_shared<const TemplateSet>(std::map<std::string, std::string>{
      {"tile/scale.cuh",
       "#pragma once\n"
       "namespace annulus::tile {\n"
       "constexpr int kBias = 5;\n"
       "__device__ __noinline__ int scale(int x) { return x * 3 + kBias; }\n"
       "}  // namespace annulus::tile\n"},
      {"kernels/sample.cu",
       "#include \"tile/scale.cuh\"\n"
       "namespace annulus::kernels {\n"
       "template <typename Shape, typename Mask>\n"
       "__global__ void __launch_bounds__(Shape::kThreads) sample(int* values) {\n"
       "  __shared__ int buffer[300];\n"
       "  int many[Shape::kMany];\n"
       "  for (int i = 0; i < Shape::kMany; ++i) many[i] = values[i];\n"
       "  buffer[threadIdx.x] = tile::scale(many[values[7] % Shape::kMany]);\n"
       "  __syncthreads();\n"
       "  if (Mask::visible(values[0])) values[3] = buffer[values[1]];\n"
       "}\n"
       "}  // namespace annulus::kernels\n"}});
}

KernelSpec sample_spec(int many = 1, const std::string& expression = "x < 3") {
  return {
      .family = "sample",
      .arch = {80, '\0'},
      .file = "kernels/sample.cu",
      .entry = "sample",
      .structs = {
          {.name = "Shape",
           .constants = {Constant::integer("kThreads", 64), Constant::integer("kMany", many)},
           .functions = {}},
          {.name = "Mask", .constants = {}, .functions = {{"bool visible(int x)", expression}}}}};
}

std::string text_of(const CompiledKernel& kernel) {
  return {reinterpret_cast<const char*>(kernel.image.data()), kernel.image.size()};
}

std::string message_of(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL_CHECK("no error");
  return "";
}

TEST_CASE("PTX carries the kernel and the names of template lines") {
  const auto library = nvrtc();
  if (!library) return;
  const Compiler compiler(library, sample_templates(), ImageKind::kPtx);
  const CompiledKernel kernel = compiler.compile(sample_spec());
  CHECK(kernel.kind == ImageKind::kPtx);
  CHECK(kernel.image.back() == std::byte{0});
  CHECK_FALSE(kernel.usage.known);
  const std::string ptx = text_of(kernel);
  CHECK(ptx.find(".target sm_80") != std::string::npos);
  CHECK(ptx.find(".entry " + kernel.symbol + "(") != std::string::npos);
  CHECK(ptx.find("\"/annulus/tile/scale.cuh\"") != std::string::npos);
  CHECK(ptx.find("\"/annulus/kernels/sample.cu\"") != std::string::npos);
  CHECK(ptx.find(std::filesystem::current_path().string()) == std::string::npos);
}

TEST_CASE("a cubin comes with registers, local and shared memory") {
  const auto library = nvrtc();
  if (!library) return;
  const Compiler compiler(library, sample_templates(), ImageKind::kCubin);
  const CompiledKernel lean = compiler.compile(sample_spec());
  CHECK(lean.usage.known);
  CHECK(lean.usage.registers > 4);
  CHECK(lean.usage.registers < 64);
  CHECK(lean.usage.local_bytes == 0);
  CHECK(lean.usage.spill_store_bytes == 0);
  CHECK(lean.usage.static_shared_bytes == 1200);
  CHECK(lean.usage.notes.empty());
  // The index of the array is read from memory, so the array cannot be in registers.
  const CompiledKernel heavy = compiler.compile(sample_spec(100));
  CHECK(heavy.usage.local_bytes == 400);
  const std::optional<CubinUsage> stated = read_cubin(heavy.image, heavy.symbol);
  REQUIRE(stated);
  CHECK(stated->registers == heavy.usage.registers);
  CHECK(stated->frame_bytes == 400);
  CHECK(stated->static_shared_bytes == 1200);
  CHECK_FALSE(read_cubin(heavy.image, "other"));
}

TEST_CASE("what ptxas remarks about wgmma comes with the kernel") {
  const auto library = nvrtc();
  if (!library) return;
  // The kernel reads the accumulators before the wait, so ptxas adds another wait before the read.
  const Compiler compiler(
      library,
      std::make_shared<const TemplateSet>(std::map<std::string, std::string>{
          {"kernels/hasty.cu",
           "namespace annulus::kernels {\n"
           "__global__ void hasty(float* out, unsigned long long a, unsigned long long b) {\n"
           "  float d[4] = {};\n"
           "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
           "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 \"\n"
           "               \"{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\"\n"
           "               : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
           "               : \"l\"(a), \"l\"(b));\n"
           "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
           "  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];\n"
           "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n"
           "}\n"
           "}  // namespace annulus::kernels\n"}}),
      ImageKind::kCubin);
  const CompiledKernel kernel = compiler.compile({.family = "hasty",
                                                  .arch = {90, 'a'},
                                                  .file = "kernels/hasty.cu",
                                                  .entry = "hasty",
                                                  .structs = {}});
  CHECK(kernel.usage.registers > 4);
  REQUIRE(kernel.usage.notes.size() == 1);
  CHECK(kernel.usage.notes[0].starts_with("(C75"));
}

TEST_CASE("the image depends on neither folder, process nor thread") {
  const auto library = nvrtc();
  if (!library) return;
  for (ImageKind kind : {ImageKind::kPtx, ImageKind::kCubin}) {
    const Compiler compiler(library, sample_templates(), kind);
    const CompiledKernel first = compiler.compile(sample_spec());
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    CompiledKernel here, there;
    std::thread other([&] { there = compiler.compile(sample_spec()); });
    here = compiler.compile(sample_spec());
    other.join();
    std::filesystem::current_path(before);
    CHECK(here == first);
    CHECK(there == first);
    // Internal names would contain the process id.
    CHECK(text_of(first).find(std::to_string(getpid()) + "7annulus") == std::string::npos);
  }
}

TEST_CASE("what NVRTC rejects is an error with its log and the source") {
  const auto library = nvrtc();
  if (!library) return;
  const Compiler compiler(library, sample_templates(), ImageKind::kPtx);
  const std::string message = message_of(
      [&] { compiler.compile(sample_spec(1, "x < missing_name")); }, ErrorCode::kCompile);
  CHECK(message.find("missing_name\" is undefined") != std::string::npos);
  CHECK(message.find("/annulus/specialised.cu(") != std::string::npos);
  CHECK(message.find("struct Mask {") != std::string::npos);
  KernelSpec absent = sample_spec();
  absent.file = "kernels/absent.cu";
  CHECK(message_of([&] { compiler.compile(absent); }, ErrorCode::kCompile).find("absent.cu") !=
        std::string::npos);
}

TEST_CASE("the working directory cannot slip a file under a missing include") {
  const auto library = nvrtc();
  if (!library) return;
  test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "kernels");
  std::ofstream(folder / "kernels/absent.cu")
      << "namespace annulus::kernels { __global__ void absent() {} }\n";
  const Compiler compiler(library, sample_templates(), ImageKind::kPtx);
  KernelSpec absent{.family = "absent",
                    .arch = {80, '\0'},
                    .file = "kernels/absent.cu",
                    .entry = "absent",
                    .structs = {}};
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string message = message_of([&] { compiler.compile(absent); }, ErrorCode::kCompile);
  std::filesystem::current_path(before);
  CHECK(message.find("could not open source file") != std::string::npos);
}

TEST_CASE("an architecture that this NVRTC does not know is unsupported") {
  const auto library = nvrtc();
  if (!library) return;
  const Compiler compiler(library, sample_templates(), ImageKind::kPtx);
  KernelSpec spec = sample_spec();
  spec.arch = {52, '\0'};
  CHECK(message_of([&] { compiler.compile(spec); }, ErrorCode::kUnsupported).find("sm_80") !=
        std::string::npos);
}

TEST_CASE("everything that decides the image is in the key") {
  const auto library = nvrtc();
  if (!library) return;
  const Compiler ptx(library, sample_templates(), ImageKind::kPtx);
  const Compiler cubin(library, sample_templates(), ImageKind::kCubin);
  std::map<std::string, std::string> files = sample_templates()->files();
  files["tile/scale.cuh"] += "\n";
  const Compiler edited(library, std::make_shared<const TemplateSet>(files), ImageKind::kPtx);
  const KernelKey key = ptx.prepare(sample_spec()).key;
  CHECK(key == ptx.prepare(sample_spec()).key);
  CHECK_FALSE(key == ptx.prepare(sample_spec(2)).key);
  CHECK_FALSE(key == ptx.prepare(sample_spec(1, "x < 4")).key);
  CHECK_FALSE(key == cubin.prepare(sample_spec()).key);
  CHECK_FALSE(key == edited.prepare(sample_spec()).key);
  KernelSpec newer = sample_spec();
  newer.arch = {90, 'a'};
  CHECK_FALSE(key == ptx.prepare(newer).key);
  CHECK(key.compiler.starts_with(library->report.version_text + " ("));
  CHECK(compiler_version(key.compiler) == library->report.version);
  for (const std::string& text : {key.wanted, key.compiler}) {
    CHECK(text.find(library->report.path) == std::string::npos);
  }
  // Without NVRTC the wanted text is the same.
  auto none = std::make_shared<abi::NvrtcLibrary>();
  none->report.problem = "there is no NVRTC; install it";
  const Compiler preparing(none, sample_templates(), ImageKind::kPtx);
  CHECK(preparing.prepare(sample_spec()).key == KernelKey(key.wanted, ""));
  CHECK(to_string(preparing.origin({80, '\0'})).find("any nvrtc") != std::string::npos);
  CHECK(ptx.identity().find("no build id") == std::string::npos);
}

}  // namespace
}  // namespace annulus::jit
