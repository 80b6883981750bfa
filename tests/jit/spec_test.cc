#include "jit/spec.h"

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "jit/arch.h"

namespace annulus::jit {
namespace {

KernelSpec sample() {
  return {.family = "mma_forward",
          .arch = {80, '\0'},
          .file = "kernels/mma/mma_forward.cu",
          .entry = "mma_forward",
          .structs = {
              {.name = "Shape",
               .constants = {Constant::type("Element", "tile::Bfloat16"),
                             Constant::integer("kDimQk", 128), Constant::integer("kOffset", -3),
                             Constant::boolean("kCarryIn", false), Constant::integer("kStages", 2)},
               .functions = {}},
              {.name = "Mask",
               .constants = {},
               .functions = {{"template <typename M> bool visible(const M& m, int q, int k)",
                              "m.causal(q, k) & m.window(0, 1, q, k)"}}}}};
}

template <typename Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{0};
}

TEST_CASE("the specialised source is this text, which is part of every cache key") {
  CHECK(source_text(sample()) ==
        R"(// mma_forward for sm_80
#include "kernels/mma/mma_forward.cu"

namespace annulus::kernels {
struct Shape {
  using Element = tile::Bfloat16;
  enum : int { kDimQk = 128, kOffset = -3 };
  enum : bool { kCarryIn = false };
  enum : int { kStages = 2 };
};
struct Mask {
  template <typename M>
  __device__ __forceinline__ static bool visible(const M& m, int q, int k) {
    return m.causal(q, k) & m.window(0, 1, q, k);
  }
};
template __global__ decltype(mma_forward<Shape, Mask>) mma_forward<Shape, Mask>;
}  // namespace annulus::kernels
)");
  CHECK(qualified_entry(sample()) ==
        "annulus::kernels::mma_forward<annulus::kernels::Shape, annulus::kernels::Mask>");
}

TEST_CASE("a kernel that is no template is only included") {
  const KernelSpec spec{.family = "probe",
                        .arch = {90, 'a'},
                        .file = "kernels/probe.cu",
                        .entry = "probe",
                        .structs = {}};
  CHECK(source_text(spec) == "// probe for sm_90a\n#include \"kernels/probe.cu\"\n");
  CHECK(qualified_entry(spec) == "annulus::kernels::probe");
}

TEST_CASE("a lambda of one expression is part of an expression") {
  KernelSpec spec = sample();
  const std::string text =
      "m.all_of(1, 2, 0, [&](const auto& m) { return !m.window(0, 1, q, k); })";
  spec.structs[1].functions[0].expression = text;
  CHECK(source_text(spec).find("return " + text + ";") != std::string::npos);
}

TEST_CASE("text that could be more than what it stands for is refused") {
  const auto refused = [](auto change) {
    KernelSpec spec = sample();
    change(spec);
    return code_of([&] { source_text(spec); }) == ErrorCode::kInvalidArgument;
  };
  CHECK_FALSE(refused([](KernelSpec&) {}));
  for (const char* bad :
       {"", "1", "true; }", "m.causal(q, k", "m.causal(q, k))", ")(", "x\n#include", "x // y",
        "x /* y", "asm(x)", "\"x\"", "x\\", "{ x }", "#x", "x`", "\xc3\xa4",
        "f([&](const auto& m) { return x; }", "f([&](const auto& m) { return x; y; })",
        "f([&](const auto& m) { return x; }})"}) {
    CAPTURE(bad);
    const bool fine = std::string(bad) == "1";
    CHECK(refused([&](KernelSpec& s) { s.structs[1].functions[0].expression = bad; }) == !fine);
    CHECK(refused([&](KernelSpec& s) { s.structs[0].constants[1].name = bad; }));
    CHECK(refused([&](KernelSpec& s) { s.structs[0].name = bad; }));
    CHECK(refused([&](KernelSpec& s) { s.entry = bad; }));
    CHECK(refused([&](KernelSpec& s) { s.family = bad; }));
  }
  CHECK(refused([](KernelSpec& s) { s.structs[0].constants[0].value = "int; int y"; }));
  CHECK(refused([](KernelSpec& s) { s.file = "a.cu\"\n#include \"/etc/passwd"; }));
  CHECK(refused(
      [](KernelSpec& s) { s.structs[1].functions[0].expression = std::string(1 << 20, '1'); }));
}

TEST_CASE("architectures are written and read") {
  for (const char* text : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100f", "sm_120a"}) {
    CHECK(to_string(parse_arch(text)) == text);
  }
  CHECK(virtual_name({90, 'a'}) == "compute_90a");
  for (const char* text : {"", "80", "sm_", "sm_8", "sm_80b", "sm_80aa", "sm_-80", "sm_080",
                           "sm_99999999999", "SM_80", "sm_80 "}) {
    CAPTURE(text);
    CHECK(code_of([&] { parse_arch(text); }) == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("a kernel runs on its own generation from its number on, or on exactly its own chip") {
  CHECK(runs_on({80, '\0'}, {86, '\0'}));
  CHECK_FALSE(runs_on({86, '\0'}, {80, '\0'}));
  CHECK_FALSE(runs_on({80, '\0'}, {90, '\0'}));
  CHECK(runs_on({90, 'a'}, {90, '\0'}));
  CHECK_FALSE(runs_on({100, 'a'}, {103, '\0'}));
  CHECK(runs_on({100, 'f'}, {103, '\0'}));
  CHECK(arch_of_capability(8, 9) == Arch{89, '\0'});
}

}  // namespace
}  // namespace annulus::jit
