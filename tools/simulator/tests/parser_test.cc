#include "simulator/ptx/parser.h"

#include <doctest/doctest.h>

#include <bit>
#include <string>

#include "annulus/types.h"
#include "base/random.h"

namespace annulus::ptx {
namespace {

constexpr const char* kHead = ".version 9.0\n.target sm_80\n.address_size 64\n";

std::string kernel(const std::string& body) {
  return std::string(kHead) + ".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n";
}

Error failure(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error;
  }
  FAIL("parsed: " << text);
  return Error(ErrorCode::kInternal, "");
}

TEST_CASE("a module keeps its declarations") {
  const Module module = parse(std::string(kHead) + R"(
.extern .shared .align 128 .b8 dynamic[];
.const .align 4 .f32 table[3] = {1.5, 0f40000000, -2};
.global .align 8 .b8 bytes[5] = {1, 2};
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>; ret; }
.visible .entry k(.param .align 8 .b8 block[40], .param .u32 n)
.maxntid 16, 8, 1
{ ret; }
)");
  CHECK(module.version_major == 9);
  CHECK(module.version_minor == 0);
  CHECK(module.target == "sm_80");
  REQUIRE(module.variables.size() == 3);
  CHECK(module.variables[0].external);
  CHECK(module.variables[0].alignment == 128);
  CHECK(module.variables[0].bytes == 0);
  CHECK(module.variables[1].bytes == 12);
  CHECK(module.variables[1].initial[3] == 0x3f);   // 1.5f
  CHECK(module.variables[1].initial[7] == 0x40);   // 2.0f
  CHECK(module.variables[1].initial[11] == 0xff);  // integer -2, as written
  CHECK(module.variables[2].initial == std::vector<std::uint8_t>{1, 2});
  REQUIRE(module.functions.size() == 2);
  CHECK_FALSE(module.functions[0].entry);
  CHECK(module.functions[0].results.size() == 1);
  CHECK(module.functions[1].entry);
  CHECK(module.functions[1].max_threads == 128);
  CHECK(module.functions[1].parameters[0].bytes == 40);
  CHECK(module.functions[1].parameters[0].alignment == 8);
}

TEST_CASE("an instruction prints as it was written") {
  const char* lines[] = {
      "add.s32 %r1, %r2, -5",
      "@!%p1 bra $L__done",
      "mov.b64 {%r1, %r2}, %rd1",
      "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3",
      "ld.global.nc.L2::128B.v2.u32 {%r1, _}, [%rd1-16]",
      "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1",
      "st.shared.u32 [buffer+8], %r1",
      "mov.u32 %r1, %tid.x",
      "cp.async.cg.shared.global [%r1], [%rd1], 16, %r2",
  };
  std::string body = ".reg .pred %p<4>;.reg .b32 %r<4>;.reg .b64 %rd<2>;.shared .b8 buffer[64];\n";
  for (const char* line : lines) body += std::string(line) + ";\n";
  const Module module = parse(kernel(body + "$L__done:\nret;"));
  const Function& function = module.functions[0];
  REQUIRE(function.code.size() == std::size(lines) + 1);
  for (std::size_t i = 0; i < std::size(lines); ++i) {
    CHECK(to_string(function, function.code[i]) == lines[i]);
  }
}

TEST_CASE("numbers keep their bits") {
  const Module module = parse(
      kernel(".reg .b64 %rd<2>;\nmov.u64 %rd1, 0xffffffffffffffff;\nmov.u64 %rd1, 0b101;\n"
             "mov.u64 %rd1, 017;\nmov.f64 %rd1, 0d3FF8000000000000;\nmov.f32 %rd1, 0f7F800001;\n"
             "mov.u64 %rd1, 18446744073709551615U;"));
  const auto bits = [&](std::size_t i) { return module.functions[0].code[i].operands[1].bits; };
  CHECK(bits(0) == ~0ull);
  CHECK(bits(1) == 5);
  CHECK(bits(2) == 15);
  CHECK(std::bit_cast<double>(bits(3)) == 1.5);
  // A signalling NaN of fp32 stays a signalling NaN when it is narrowed to fp32 again.
  CHECK(((bits(4) >> 29) & 0x7fffff) == 1);
  CHECK(bits(5) == ~0ull);
}

TEST_CASE("a block in braces has names of its own") {
  const Module module =
      parse(kernel(".reg .b32 %r<2>;\n{ .reg .b32 x; again: mov.b32 x, 1; bra again; }\n"
                   "{ .reg .b32 x; again: mov.b32 x, 2; bra again; }\nmov.b32 %r1, 3;"));
  const Function& function = module.functions[0];
  CHECK(function.registers.size() == 4);
  CHECK(function.code[0].operands[0].reg != function.code[2].operands[0].reg);
  CHECK(function.labels[static_cast<std::size_t>(function.code[1].operands[0].label)].target == 0);
  CHECK(function.labels[static_cast<std::size_t>(function.code[3].operands[0].label)].target == 2);
}

TEST_CASE("variables of one name in different blocks are different") {
  const Module module =
      parse(kernel(".reg .b32 %r<2>;\n.local .b32 x;\n{ .local .b64 x; st.local.b64 [x+4], 1; }\n"
                   "st.local.b32 [x], %r1;\nmov.b32 %r1, x;\nmov.b32 %r1, p;") +
            ".func f() { .shared .b32 x; st.shared.b32 [x], 1; }");
  const Function& function = module.functions[0];
  REQUIRE(function.variables.size() == 2);
  CHECK(function.variables[0].bytes == 4);
  CHECK(function.variables[1].bytes == 8);
  CHECK(function.code[0].operands[0].text == function.variables[1].name);
  CHECK(function.code[1].operands[0].text == function.variables[0].name);
  CHECK(function.code[2].operands[1].text == function.variables[0].name);
  CHECK(function.code[3].operands[1].text == "p");
  CHECK(to_string(function, function.code[0]) == "st.local.b64 [x+4], 1");
  CHECK(module.functions[1].variables[0].name != function.variables[0].name);
}

TEST_CASE("a branch leaves its block, forwards or backwards") {
  const Module module =
      parse(kernel("before: { bra after; { bra before; bra inner; } inner: ret; }\nafter: ret;"));
  const Function& function = module.functions[0];
  const auto target = [&](std::size_t i) {
    return function.labels[static_cast<std::size_t>(function.code[i].operands[0].label)].target;
  };
  CHECK(target(0) == 4);
  CHECK(target(1) == 0);
  CHECK(target(2) == 3);
}

TEST_CASE("a call through a register becomes a call of each function that it may mean") {
  const ptx::Module module = parse(R"(
.func (.param .b32 r) fits(.param .b32 x) { ret; }
.func (.param .b32 r) not_taken(.param .b32 x) { ret; }
.func (.param .b32 r) other(.param .b64 x) { ret; }
.global .u64 table[2] = {fits, other};
.func (.param .b32 r) caller(.param .b32 x) {
  .reg .b64 %f;
  .reg .pred %p;
  .param .b32 a;
  .param .b32 b;
  mov.u64 %f, caller;
  @%p bra END;
  P: .callprototype (.param .b32 _) _ (.param .b32 _);
  @!%p call (b), %f, (a), P;
END:
  ret;
}
)");
  const ptx::Function& caller = module.functions.back();
  std::vector<std::string> code;
  for (const ptx::Instruction& instruction : caller.code) {
    code.push_back(to_string(caller, instruction));
  }
  // The call cannot go to other functions, or to the caller itself.
  REQUIRE(code.size() == 7);
  CHECK(code[2].starts_with("setp.eq.and.u64 "));
  CHECK(code[2].ends_with("%f, fits, !%p"));
  CHECK(code[3].starts_with("setp.ne.and.u64 "));
  CHECK(code[4].find("fits") != std::string::npos);
  CHECK(caller.code[4].guard == caller.code[2].operands[0].reg);
  CHECK(caller.code[5].guard == caller.code[3].operands[0].reg);
  CHECK(code[5].find("%f") != std::string::npos);
  CHECK(caller.labels[static_cast<std::size_t>(caller.code[1].operands[0].label)].target == 6);
}

TEST_CASE("line information follows inlining") {
  const Module module =
      parse(kernel(".reg .b32 %r<2>;\n.loc 1 10 3\nmov.b32 %r1, 1;\n"
                   ".loc 2 20 3, function_name $name, inlined_at 1 10 3\nmov.b32 %r1, 2;\n"
                   ".loc 2 30 5, function_name $name+4, inlined_at 2 20 3\nmov.b32 %r1, 3;") +
            ".file 1 \"/a.cu\"\n.file 2 \"/b.cuh\"\n");
  const auto& code = module.functions[0].code;
  const auto location = [&](int index) {
    return module.locations[static_cast<std::size_t>(index)];
  };
  CHECK(location(code[0].location).line == 10);
  CHECK(location(code[1].location).file == 2);
  CHECK(location(location(code[1].location).inlined_at).line == 10);
  const Location middle = location(location(code[2].location).inlined_at);
  CHECK(middle.line == 20);
  CHECK(location(middle.inlined_at).line == 10);
  CHECK(*module.file_name(2) == "/b.cuh");
  CHECK(module.file_name(3) == nullptr);
}

TEST_CASE("what does not parse is named with its line") {
  const std::pair<std::string, const char*> cases[] = {
      {kernel(".reg .b32 %r<2>;\nmov.b32 %r1, 1"), "line 8"},
      {kernel("bra nowhere;"), "nowhere"},
      {kernel("@%p1 ret;"), "%p1"},
      {kernel("ld.global.u32 %r1, [%rd1];"), "%rd1"},
      {kernel(".reg .b7x %r1;"), "line 6"},
      {kernel(".reg .b32 %r<99999999>;"), "too many"},
      {kernel("mov.b32 \"text"), "string"},
      {kernel("a: a: ret;"), "two labels"},
      {std::string(kHead) + ".visible .entry k() {", "not closed"},
      {std::string(kHead) + "/* open", "comment"},
      {std::string(kHead) + ".global .b8 huge[9999999999999999];", "too large"},
      {std::string(kHead) + ".global .b8 huge[4294967296][4294967296];", "too large"},
      {kernel("mov.b32 " + std::string(1000000, '!') + "p, q;"), "deep"},
      {kernel("mov.b32 " + std::string(1000000, '{') + "p, q;"), "deep"},
      {std::string(kHead) + ".global .align 0 .b8 x[4];", "power of two"},
      {std::string(kHead) + ".global .align 4294967296 .b8 x[4];", "power of two"},
      {std::string(kHead) + ".shared .b8 x[4294967297];", "too large"},
      {kernel("{ inside: ret; }\nbra inside;"), "inside"},
      {".version 1e300", "version"},
      {".version 9.0 .target sm_80 .address_size 32", "64-bit"},
      {"hello", "line 1"},
      {std::string(kHead) + ".entry k() .maxntid 0, 1 { ret; }", ".maxntid of 0"},
      {std::string(kHead) + ".entry k() .minnctapersm 0 { ret; }", ".minnctapersm of 0"},
      {std::string(kHead) + ".entry k() .maxnreg 4294967296 { ret; }", ".maxnreg of 4294967296"},
      {std::string(kHead) + ".entry k() .reqntid 1, -1 { ret; }", "from 1 to 2147483647"},
      {kernel(std::string(100, '{')), "deep"},
  };
  for (const auto& [text, part] : cases) {
    const Error error = failure(text);
    CHECK(error.code() == ErrorCode::kParse);
    CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
  }
  CHECK(failure(kernel(".branchtargets a;")).code() == ErrorCode::kParse);
  CHECK(failure(kernel(".maxntid 4;")).code() == ErrorCode::kUnsupported);
}

TEST_CASE("a managed variable is one of global memory, and there are no other attributes") {
  const auto text = [](const char* variable) {
    return std::string(".version 8.0\n.target sm_80\n.address_size 64\n") + variable;
  };
  const Module module = parse(text(".visible .global .attribute(.managed) .align 4 .u32 m = 7;"));
  REQUIRE(module.variables.size() == 1);
  CHECK(module.variables[0].space == Space::kGlobal);
  CHECK(module.variables[0].initial[0] == 7);
  CHECK_THROWS_WITH_AS(parse(text(".const .attribute(.managed) .align 4 .u32 m;")),
                       doctest::Contains("supported is .managed, of a global"), Error);
  CHECK_THROWS_AS(parse(text(".global .attribute(.unified(1, 2)) .align 4 .u32 m;")), Error);
}

TEST_CASE("damaged text gives an error or a module, never more") {
  const std::string whole =
      kernel(
          ".reg .pred %p<2>;.reg .b32 %r<4>;.reg .b64 %rd<2>;\n.loc 1 10 3\n"
          "ld.param.u64 %rd1, [p];\nsetp.ne.s32 %p1, %r1, 0;\n@%p1 bra $L1;\n"
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1,%r2},{%r1},{%r2},{%r3,_};\n"
          "$L1: { .reg .b32 x; mov.b32 x, 0f3F800000; }\n"
          "{ .reg .b64 f; .param .b32 a; .param .b32 b;\nmov.u64 f, g;\n"
          "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n@!%p1 call (b), f, (a), P; }\n"
          "ret;") +
      ".func (.param .b32 r) g(.param .b32 x) { ret; }\n.file 1 \"/a.cu\"\n";
  base::Random random(7);
  int errors = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    const std::uint32_t edits = 1 + random.below(3);
    for (std::uint32_t edit = 0; edit < edits; ++edit) {
      const auto at = random.below(static_cast<std::uint32_t>(text.size()));
      switch (random.below(3)) {
        case 0:
          text[at] = static_cast<char>(random.below(128));
          break;
        case 1:
          text.erase(at, 1 + random.below(8));
          break;
        default:
          text.insert(at, 1, "{}[]();,.:@%-+|"[random.below(15)]);
          break;
      }
    }
    try {
      parse(text);
    } catch (const Error& error) {
      ++errors;
      CHECK((error.code() == ErrorCode::kParse || error.code() == ErrorCode::kUnsupported));
    }
  }
  CHECK(errors > 5000);
}

}  // namespace
}  // namespace annulus::ptx
