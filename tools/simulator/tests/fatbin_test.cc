// Tests of fat binaries, of the text that kernels print, and of asserts in kernels.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "on_device.h"

namespace annulus::simulator {
namespace {

std::string ptx_for(const std::string& target, const std::string& body = "ret;") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry k() {\n" + body +
         "\n}\n";
}

template <typename T>
void put(std::string& bytes, std::size_t at, T value) {
  if (bytes.size() < at + sizeof(T)) bytes.resize(at + sizeof(T), '\0');
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

struct Entry {
  std::uint16_t kind = 1;
  std::string payload;
  std::uint64_t flags = 0;
  std::uint32_t compressed = 0;
  std::uint64_t text = 0;
};

std::string fatbin(const std::vector<Entry>& entries) {
  std::string body;
  for (const Entry& entry : entries) {
    std::string header;
    put<std::uint16_t>(header, 0, entry.kind);
    put<std::uint16_t>(header, 2, 0x101);
    put<std::uint32_t>(header, 4, 80);
    put<std::uint64_t>(header, 8, entry.payload.size());
    put<std::uint32_t>(header, 16, entry.compressed);
    put<std::uint64_t>(header, 40, entry.flags);
    put<std::uint64_t>(header, 56, entry.text);
    header.resize(80, '\0');
    body += header + entry.payload;
  }
  std::string whole;
  put<std::uint32_t>(whole, 0, 0xba55ed50);
  put<std::uint16_t>(whole, 4, 1);
  put<std::uint16_t>(whole, 6, 16);
  put<std::uint64_t>(whole, 8, body.size());
  return whole + body;
}

CUresult load(const OnDevice& on, const void* image) {
  CUmodule module = nullptr;
  const CUresult code = on.cuda.module_load_data(&module, image);
  if (module != nullptr) on.cuda.module_unload(module);
  return code;
}

TEST_CASE("the newest PTX of a fat binary that a device runs is taken") {
  const OnDevice old;
  const OnDevice hopper(first_ordinal("sm_90a"));
  // The text that must not be used has a syntax error.
  const std::string good = ptx_for("sm_80"), wrong_new = ptx_for("sm_90a", "???");
  const std::string image = fatbin({{1, good + std::string(3, '\0')}, {1, wrong_new}});
  old.cuda.ctx_set_current(old.context);
  CHECK(load(old, image.data()) == kCudaSuccess);
  hopper.cuda.ctx_set_current(hopper.context);
  CHECK(load(hopper, image.data()) == kCudaInvalidPtx);
  const std::string other = fatbin({{1, ptx_for("sm_80", "???")}, {1, ptx_for("sm_90a")}});
  CHECK(load(hopper, other.data()) == kCudaSuccess);
  old.cuda.ctx_set_current(old.context);
  CHECK(load(old, other.data()) == kCudaInvalidPtx);
  // An image in a wrapper, as nvcc registers it.
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const char* data = nullptr;
    void* more = nullptr;
  } wrapper;
  wrapper.data = image.data();
  CHECK(load(old, &wrapper) == kCudaSuccess);
  wrapper.data = "nothing of the kind";
  CHECK(load(old, &wrapper) == kCudaInvalidImage);
}

TEST_CASE("a fat binary without PTX for the device says what it has and how to compile") {
  const OnDevice on;
  const std::string image = fatbin({{1, ptx_for("sm_100")},
                                    {2,
                                     "\x7f"
                                     "ELF"},
                                    {2, "x"}});
  CHECK(load(on, image.data()) == kCudaNoBinaryForGpu);
  CHECK(on.message().find("PTX for: sm_100; 2 compiled binaries") != std::string::npos);
  CHECK(on.message().find("-gencode arch=compute_80,code=compute_80") != std::string::npos);
  CHECK(load(on, fatbin({}).data()) == kCudaNoBinaryForGpu);
}

TEST_CASE("damaged fat binaries are refused") {
  const OnDevice on;
  const std::string good = fatbin({{1, ptx_for("sm_80")}});
  // With every value of every byte of the entry's header, the call must return, with any code.
  for (std::size_t at = 16; at < 16 + 64; ++at) {
    for (const int byte : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(byte);
      load(on, bad.data());
    }
  }
  std::string longer = good;
  put<std::uint64_t>(longer, 16 + 8, std::uint64_t{1} << 62);
  CHECK(load(on, longer.data()) == kCudaInvalidImage);
  std::string header = good;
  put<std::uint32_t>(header, 16 + 4, 0);
  CHECK(load(on, header.data()) == kCudaInvalidImage);
  CHECK(on.message().find("it is damaged") != std::string::npos);
  const std::string text = ptx_for("sm_80");
  for (const std::uint64_t flag : {0x2000u, 0x8000u}) {
    const auto size = static_cast<std::uint32_t>(text.size());
    // The text is not compressed, then longer than its size, then larger than any text.
    CHECK(load(on, fatbin({{1, text, flag, size, 5000}}).data()) == kCudaInvalidImage);
    CHECK(load(on, fatbin({{1, text, flag, size + 1, 5000}}).data()) == kCudaInvalidImage);
    CHECK(load(on, fatbin({{1, text, flag, size, ~std::uint64_t{0}}}).data()) == kCudaInvalidImage);
  }
}

TEST_CASE("PTX compressed with zstd is expanded, where the library is there") {
  void* zstd = ::dlopen("libzstd.so.1", RTLD_NOW);
  if (zstd == nullptr) {
    MESSAGE("no libzstd.so.1 here");
    return;
  }
  const auto compress =
      reinterpret_cast<std::size_t (*)(void*, std::size_t, const void*, std::size_t, int)>(
          ::dlsym(zstd, "ZSTD_compress"));
  REQUIRE(static_cast<bool>(compress));
  const OnDevice on;
  const std::string text = ptx_for("sm_80");
  std::string payload(1000, '\0');
  const std::size_t size = compress(payload.data(), payload.size(), text.data(), text.size(), 1);
  REQUIRE(size < payload.size());
  const auto compressed = static_cast<std::uint32_t>(size);
  CHECK(load(on, fatbin({{1, payload, 0x8000, compressed, text.size()}}).data()) == kCudaSuccess);
  payload[size / 2] = static_cast<char>(payload[size / 2] ^ 0x55);
  CHECK(load(on, fatbin({{1, payload, 0x8000, compressed, text.size() + 1}}).data()) ==
        kCudaInvalidImage);
}

// Captures what the process writes to a stream.
class Captured {
 public:
  explicit Captured(std::FILE* stream) : stream_(stream), file_(std::tmpfile()) {
    REQUIRE(file_ != nullptr);
    std::fflush(stream_);
    before_ = ::dup(::fileno(stream_));
    ::dup2(::fileno(file_), ::fileno(stream_));
  }
  ~Captured() { std::fclose(file_); }
  std::string text() {
    std::fflush(stream_);
    ::dup2(before_, ::fileno(stream_));
    ::close(before_);
    std::string text(1 << 16, '\0');
    std::rewind(file_);
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  std::FILE* stream_;
  std::FILE* file_;
  int before_ = -1;
};

// Prints from lane 0 of each of three blocks, with every kind of argument.
constexpr const char* kPrinting = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 format[29] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108,
  120, 32, 37, 99, 32, 37, 37, 32, 37, 42, 117, 32, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
.visible .entry k(.param .u64 out) {
  .local .align 8 .b8 arguments[48];
  .reg .b64 a, f, w, o;
  .reg .b32 block, thread, result;
  .reg .pred first;
  mov.u32 block, %ctaid.x;
  mov.u32 thread, %tid.x;
  setp.ne.u32 first, thread, 0;
  @first ret;
  mov.u64 a, arguments;
  cvta.local.u64 a, a;
  st.u32 [a], block;
  mov.f64 o, 0d3ff8000000000000;
  st.b64 [a+8], o;
  mov.u64 w, word;
  cvta.global.u64 w, w;
  st.u64 [a+16], w;
  mov.u64 o, 0xabcdef0123;
  st.u64 [a+24], o;
  mov.u32 result, 33;
  st.u32 [a+32], result;
  mov.u32 result, 4;
  st.u32 [a+36], result;
  mov.u32 result, 7;
  st.u32 [a+40], result;
  mov.u64 f, format;
  cvta.global.u64 f, f;
  {
    .param .b64 p0;
    .param .b64 p1;
    .param .b32 r;
    st.param.b64 [p0], f;
    st.param.b64 [p1], a;
    call.uni (r), vprintf, (p0, p1);
    ld.param.b32 result, [r];
  }
  ld.param.u64 o, [out];
  mul.wide.u32 a, block, 4;
  add.s64 o, o, a;
  st.global.u32 [o], result;
  ret;
}
)";

TEST_CASE("kernels print, block after block") {
  const OnDevice on;
  const CUfunction print = on.function(on.load(kPrinting), "k");
  CUdeviceptr out = on.allocate(12);
  void* parameters[] = {&out};
  Captured captured(stdout);
  CHECK(on.cuda.launch_kernel(print, 3, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) ==
        kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  CHECK(captured.text() ==
        "0  1.50 abc abcdef0123 ! %    7 \n1  1.50 abc abcdef0123 ! %    7 \n"
        "2  1.50 abc abcdef0123 ! %    7 \n");
  std::uint32_t converted = 0;
  CHECK(on.cuda.memcpy_dtoh(&converted, out + 8, 4) == kCudaSuccess);
  CHECK(converted == 6);
}

constexpr const char* kAsserting = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 what[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {102, 46, 99, 117, 0};
.visible .entry k() {
  .reg .b64 a, b;
  .reg .b32 thread;
  .reg .pred fine;
  mov.u32 thread, %tid.y;
  setp.ne.u32 fine, thread, 2;
  @fine ret;
  mov.u64 a, what;
  cvta.global.u64 a, a;
  mov.u64 b, file;
  cvta.global.u64 b, b;
  {
    .param .b64 p0;
    .param .b64 p1;
    .param .b32 p2;
    .param .b64 p3;
    .param .b64 p4;
    st.param.b64 [p0], a;
    st.param.b64 [p1], b;
    st.param.b32 [p2], 12;
    st.param.b64 [p3], b;
    st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4);
  }
  ret;
}
)";

TEST_CASE("an assert that fails is told as CUDA tells it, and ends the context") {
  const OnDevice on;
  const CUfunction function = on.function(on.load(kAsserting), "k");
  Captured captured(stderr);
  CHECK(on.cuda.launch_kernel(function, 1, 1, 1, 8, 4, 1, 0, nullptr, nullptr, nullptr) ==
        kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaAssert);
  CHECK(captured.text() ==
        "f.cu:12: f.cu: block: [0,0,0], thread: [0,2,0] Assertion `x > 0` failed.\n");
  CHECK(on.message().find("\"kind\":\"assert\"") != std::string::npos);
}

}  // namespace
}  // namespace annulus::simulator
