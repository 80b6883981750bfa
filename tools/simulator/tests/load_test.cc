// A module with unsupported or wrong contents is refused with a reason when it is loaded.

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
#include "simulator/machine/memory.h"
#include "simulator/run/load.h"

namespace annulus::simulator {
namespace {

constexpr const char* kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

Error failure(const std::string& text) {
  GlobalMemory memory(1 << 20);
  try {
    LoadedModule::load(kHead + text, memory);
  } catch (const Error& error) {
    return error;
  }
  FAIL("loaded: " << text);
  return Error(ErrorCode::kInternal, "");
}

// Checks that an unsupported instruction is refused when a kernel reaches it.
void check_unmodelled(const std::string& text, const char* part) {
  GlobalMemory memory(1 << 20);
  const auto module = LoadedModule::load(kHead + text, memory);
  const std::vector<std::string>& refusals = module->program("k")->refusals;
  REQUIRE(refusals.size() == 1);
  const Program& program = *module->program("k");
  const std::string instruction = to_string(*program.functions[0], *program.instructions[0]);
  CHECK_MESSAGE((refusals[0] + instruction).find(part) != std::string::npos, refusals[0]);
}

std::string kernel(const std::string& body) { return ".visible .entry k() {\n" + body + "\n}\n"; }

void check_refused(const std::string& text, ErrorCode code, const char* part) {
  const Error error = failure(text);
  CHECK_MESSAGE(error.code() == code, error.what());
  CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
}

TEST_CASE("the calls by which functions call themselves are refused") {
  GlobalMemory memory(1 << 20);
  const auto refusals = [&](const std::string& functions) {
    const auto module = LoadedModule::load(kHead + functions + kernel("call f;"), memory);
    return module->program("k")->refusals;
  };
  const std::vector<std::string> once = refusals(".func f();\n.func f() { call f; ret; }\n");
  REQUIRE(once.size() == 1);
  CHECK(once[0] == "function f calls itself: recursion is not modelled");
  CHECK(refusals(".func g();\n.func f() { call g; ret; }\n.func g() { call f; ret; }\n").size() ==
        2);
  const std::string twice =
      ".func h() { ret; }\n.func f() { call h; ret; }\n.func g() { call f; call h; ret; }\n";
  CHECK(LoadedModule::load(kHead + twice + kernel("call f; call g; call f;"), memory) != nullptr);
}

TEST_CASE("arguments have the size of the parameters") {
  const std::string function = ".func f(.param .b8 p[64]) { ret; }\n";
  check_refused(function + kernel("{ .param .b32 a; call f, (a); }"), ErrorCode::kParse, "size");
}

TEST_CASE("a guard is a predicate") {
  check_refused(kernel(".reg .b32 %r1;\n@%r1 ret;"), ErrorCode::kParse, "%r1 has 32 bits");
}

TEST_CASE("a thread has no more local memory than on a GPU") {
  check_refused(kernel(".local .b8 a[300000];\n.local .b8 b[300000];"), ErrorCode::kUnsupported,
                "local memory");
}

TEST_CASE("a kernel has the static shared memory that it uses, and its functions") {
  const auto uses = [](const char* name) {
    return std::string(".reg .b32 %r;\nmov.u32 %r, ") + name + ";\n";
  };
  const std::string text =
      ".shared .align 4 .b8 s[1000];\n.shared .b8 of_nobody[40];\n"
      ".extern .shared .align 8 .b8 sized[96];\n"
      ".extern .shared .align 64 .b8 dynamic[];\n"
      ".func f() { .shared .b8 own[300];\n" +
      uses("own") +
      "ret; }\n"
      ".func g() { call f; ret; }\n"
      ".visible .entry module() {\n" +
      uses("s") + "ret; }\n.visible .entry called() {\ncall g;\n" + uses("dynamic") +
      "ret; }\n.visible .entry extern_with_size() {\n" + uses("sized") + "ret; }\n";
  GlobalMemory memory(1 << 20);
  const auto loaded = LoadedModule::load(kHead + text + kernel("ret;"), memory);
  CHECK(loaded->kernel("module")->static_shared_bytes == 1000);
  CHECK(loaded->program("module")->dynamic_shared_offset == 1008);
  CHECK(loaded->kernel("called")->static_shared_bytes == 300);
  CHECK(loaded->program("called")->dynamic_shared_offset == 320);
  CHECK(loaded->kernel("extern_with_size")->static_shared_bytes == 96);
  CHECK(loaded->kernel("k")->static_shared_bytes == 0);
  check_refused(".shared .b8 a[49153];\n" + kernel(uses("a")), ErrorCode::kParse, "49152");
}

TEST_CASE("variables are no larger than the memory they are in") {
  const std::string constants = ".const .align 4 .b8 a[65533] = {1};\n";
  check_refused(constants + ".const .b32 b;\n" + kernel("ret;"), ErrorCode::kParse, "65536");
  check_refused(".global .b8 a[900000] = {1};\n.global .b8 b[200000];\n" + kernel("ret;"),
                ErrorCode::kOutOfMemory, "1100000");
  check_refused(".global .b8 huge[1099511627776] = {1};\n" + kernel("ret;"),
                ErrorCode::kOutOfMemory, "1099511627776");
  GlobalMemory memory(1 << 20);
  const auto loaded = LoadedModule::load(
      kHead + std::string(".global .b8 a[900000] = {1};\n") + kernel("ret;"), memory);
  const std::uint64_t begin = loaded->variables()[0].address;
  unsigned char first[2] = {9, 9};
  CHECK(memory.read(first, begin, 2));
  CHECK((first[0] == 1 && first[1] == 0));
  CHECK(*memory.shadow(begin + 899990) == 0xff);
}

TEST_CASE("a kernel whose analysis would fill the memory is refused") {
  std::string text = ".reg .b32 a<99999>;\n";
  for (int i = 0; i < 25000; ++i) text += "mov.b32 a1, 0;\n";
  check_refused(kernel(text), ErrorCode::kUnsupported, "too many");
}

// The registers take 460 MB for each warp.
TEST_CASE("registers that no file of a warp can hold are refused") {
  std::string functions, calls;
  for (int f = 0; f < 2; ++f) {
    const std::string name = "f" + std::to_string(f);
    functions += ".func " + name + "() {\n";
    for (int i = 0; i < 9; ++i) functions += ".reg .b64 r" + std::to_string(i) + "_<100000>;\n";
    functions += "ret;\n}\n";
    calls += "call " + name + ";\n";
  }
  check_refused(functions + kernel(calls), ErrorCode::kUnsupported, "registers of more than");
}

// A kernel of a single statement over a few registers.
std::string statement(const std::string& text) {
  return kernel(".reg .b64 m, da, db;\n.reg .b32 s, bar, x, d<4>;\n.reg .b16 o;\n.reg .pred p;\n" +
                text);
}

TEST_CASE("forms of bulk copies that are not modelled are refused by name") {
  const std::string load = "cp.async.bulk.tensor.4d.shared::cluster.global.";
  const std::string counted = ".mbarrier::complete_tx::bytes [s], [m, {x, x, x, x}], [bar]";
  check_unmodelled(statement(load + "im2col" + counted + ", {o, o};"), "im2col");
  check_unmodelled(statement("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [m, {x, x, x, x}], "
                             "{o, o};"),
                   "im2col");
  check_unmodelled(statement("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
                             "[m, {x, x, x, x}], [s];"),
                   "im2col_no_offs");
  check_unmodelled(statement("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4"
                             ".mbarrier::complete_tx::bytes [s], [m, {x, x, x, x, x}], [bar];"),
                   "gather4");
  check_unmodelled(statement("tensormap.replace.tile.global_address.global.b1024.b64 [m], da;"),
                   "tensormap");
}

TEST_CASE("products of types that are not modelled are refused where they stand") {
  const auto product = [](const std::string& form, const char* operands) {
    return statement("mma" + form + operands);
  };
  // Sums of 8-bit floats exist only in fp32, and A is never sparse.
  check_unmodelled(product(".sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 ",
                           "{d0, d1}, {d0, d1, d2, d3}, {d0, d1}, {d0, d1};"),
                   "types");
  check_unmodelled(product(".sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ",
                           "{d0, d1, d2, d3}, {d0, d1}, {d0, d1}, {d0, d1, d2, d3}, d0, 0;"),
                   "sparse");
}

TEST_CASE("setmaxnreg and wgmma have few constants, and no others") {
  for (const char* count : {"20", "36", "100", "264"}) {
    check_refused(statement(std::string("setmaxnreg.inc.sync.aligned.u32 ") + count + ";"),
                  ErrorCode::kParse, "multiple of 8 from 24 to 256");
  }
  const auto product = [](const char* shape, const char* registers, const char* rest) {
    return statement(std::string("wgmma.mma_async.sync.aligned.") + shape + ".f32.bf16.bf16 {" +
                     registers + "}, da, db, p, " + rest + ";");
  };
  const char* four = "d0, d1, d2, d3";
  GlobalMemory memory(1 << 20);
  CHECK(LoadedModule::load(kHead + product("m64n8k16", four, "1, -1, 0, 1"), memory) != nullptr);
  check_refused(product("m64n12k16", four, "1, 1, 0, 0"), ErrorCode::kParse, "no such shape");
  check_refused(product("m64n264k16", four, "1, 1, 0, 0"), ErrorCode::kParse, "no such shape");
  check_refused(product("m64n8k8", four, "1, 1, 0, 0"), ErrorCode::kParse, "no such shape");
  check_refused(product("m64n8k16", four, "2, 1, 0, 0"), ErrorCode::kParse, "not allowed");
  check_refused(product("m64n8k16", four, "1, 1, 2, 0"), ErrorCode::kParse, "not allowed");
  check_refused(product("m64n8k16", "d0, d1, d2", "1, 1, 0, 0"), ErrorCode::kParse, "4 registers");
  check_refused(statement("wgmma.wait_group.sync.aligned 8;"), ErrorCode::kParse, "0 to 7");
  check_unmodelled(
      statement("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {d0, d1, d2, d3}, da, "
                "db, p;"),
      "not modelled");
}

TEST_CASE("comparisons of 16-bit floats that flush subnormals are refused") {
  check_unmodelled(statement("setp.lt.ftz.f16 p, o, o;"), "ftz");
}

TEST_CASE("a register of 16 bits has no parts that are modelled") {
  check_unmodelled(statement("mov.b16 o, {o, o};"), "8 bits");
  check_unmodelled(statement("mov.b16 {o, o}, o;"), "8 bits");
}

}  // namespace
}  // namespace annulus::simulator
