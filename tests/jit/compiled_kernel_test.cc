#include "jit/compiled_kernel.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/random.h"
#include "jit/sample_kernel.h"

namespace annulus::jit {
namespace {

using test::sample_kernel;
using test::sample_key;

std::optional<CompiledKernel> decode(const std::vector<std::byte>& file, int key = 1) {
  std::string why;
  auto found = decode_kernel_file(file, sample_key(key), &why);
  CHECK(why.empty() == found.has_value());
  if (!found) return std::nullopt;
  return std::move(found->kernel);
}

// Makes the digest right again, as a malicious writer would.
void sign(std::vector<std::byte>& file) {
  std::memset(file.data() + 40, 0, 16);
  const base::Digest digest = base::digest(file);
  std::memcpy(file.data() + 40, digest.bytes.data(), digest.bytes.size());
}

TEST_CASE("the origin of a kernel is the part of its key that devices share") {
  const std::string head =
      "annulus kernel\nschema 1\ntemplates 0a\nimage cubin\n"
      "options --gpu-architecture=sm_90a --std=c++17\n";
  const KernelOrigin origin = {"sm_90a", "cubin", "13.0 (b)", "0a", "1"};
  CHECK(to_string(origin) == "sm_90a, image cubin, nvrtc 13.0 (b), templates 0a, schema 1");
  CHECK(kernel_origin(head, "13.0 (b)") == origin);
  CHECK(kernel_origin(head + "entry x\nsource\ny", "13.0 (b)") == origin);
  const auto file = encode_kernel_file(KernelKey(head + "entry x\n", "13.0 (b)"), sample_kernel(1));
  CHECK(origin_of_file(std::span(file).first(300)) == origin);
  for (std::size_t bytes = 0; bytes < 64 + head.size(); ++bytes) {
    CHECK_FALSE(origin_of_file(std::span(file).first(bytes)));
  }
  CHECK_FALSE(kernel_origin("something else", "13.0 (b)"));
  // Without a compiler, the origin has the properties that the kernels of all compilers share.
  const KernelOrigin any = *kernel_origin(head, "");
  CHECK(to_string(any) == "sm_90a, image cubin, any nvrtc, templates 0a, schema 1");
  CHECK(serves(origin, any));
  CHECK(serves(origin, *kernel_origin(head, "12.8 (c)")));
  CHECK_FALSE(serves({"sm_90", "cubin", "13.0 (b)", "0a", "1"}, any));
  CHECK_FALSE(serves({"sm_90a", "cubin", "13.0 (b)", "0b", "1"}, any));
}

TEST_CASE("a compiler's version is read from its identity, and a text of another form has none") {
  CHECK(compiler_version("13.0 (65be)") == 13000);
  CHECK(compiler_version("12.8") == 12080);
  for (const char* text : {"", "13", "x.1", "-3.0", "13.x", "99999.1", "13.100"}) {
    CHECK(compiler_version(text) == 0);
  }
}

TEST_CASE("files of one kernel by two compilers lie beside each other") {
  const std::string name = kernel_file_name(sample_key(1));
  const std::string other = kernel_file_name(sample_key(1, "12.8 (other)"));
  CHECK(name.size() == 32 + 1 + 16 + 7);
  CHECK(name != other);
  CHECK(name.substr(0, 33) == other.substr(0, 33));
  CHECK(name.substr(0, 32) != kernel_file_name(sample_key(2)).substr(0, 32));
  // A key without a compiler accepts a kernel of any compiler. A key with another compiler accepts
  // none.
  const auto file = encode_kernel_file(sample_key(1), sample_kernel(1));
  std::string why;
  REQUIRE(decode_kernel_file(file, sample_key(1, ""), &why));
  CHECK(decode_kernel_file(file, sample_key(1, ""), &why)->key == sample_key(1));
  CHECK_FALSE(decode_kernel_file(file, sample_key(1, "12.8 (other)"), &why));
  CHECK_FALSE(decode_kernel_file(file, sample_key(2, ""), &why));
}

TEST_CASE("a kernel file gives back what was put in") {
  for (int number : {1, 2}) {
    const CompiledKernel kernel = sample_kernel(number);
    const auto file = encode_kernel_file(sample_key(number), kernel);
    CHECK(file == encode_kernel_file(sample_key(number), kernel));
    const auto decoded = decode(file, number);
    REQUIRE(decoded);
    CHECK(*decoded == kernel);
  }
}

TEST_CASE("every flipped byte and every truncation is noticed") {
  const auto whole = encode_kernel_file(sample_key(1), sample_kernel(1));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (unsigned bit : {1u, 0x80u, 0xffu}) {
      auto damaged = whole;
      damaged[i] ^= static_cast<std::byte>(bit);
      CHECK_FALSE(decode(damaged));
    }
    CHECK_FALSE(decode({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i)}));
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode(longer));
}

TEST_CASE("a file of another key, version or kind is refused even where its digest fits") {
  auto file = encode_kernel_file(sample_key(2), sample_kernel(1));
  std::string why;
  CHECK_FALSE(decode_kernel_file(file, sample_key(1), &why));
  CHECK(why.find("another key") != std::string::npos);
  file = encode_kernel_file(sample_key(1), sample_kernel(1));
  file[8] = std::byte{99};
  sign(file);
  CHECK_FALSE(decode_kernel_file(file, sample_key(1), &why));
  CHECK(why.find("format") != std::string::npos);
  file[8] = std::byte{1};
  file[12] = std::byte{2};
  sign(file);
  CHECK_FALSE(decode(file));
}

TEST_CASE("sizes that lie do not lead outside of the file") {
  const auto whole = encode_kernel_file(sample_key(1), sample_kernel(1));
  base::Random random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto damaged = whole;
    for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
      damaged[random.below(static_cast<std::uint32_t>(damaged.size()))] =
          static_cast<std::byte>(random.below(4) == 0 ? 0xff : random.below(256));
    }
    if (random.below(4) == 0)
      damaged.resize(random.below(static_cast<std::uint32_t>(whole.size())));
    if (damaged.size() >= kKernelFileHeader) sign(damaged);
    std::string why;
    accepted += decode_kernel_file(damaged, sample_key(1), &why).has_value();
  }
  // With a right digest, a changed image is just a different image. The test only shows that
  // nothing is read outside the file, which the sanitizers check.
  CHECK(accepted > 0);
  CHECK(accepted < 20000);
}

TEST_CASE("PTX without its terminating zero is refused") {
  CompiledKernel kernel = sample_kernel(2);
  kernel.image.back() = std::byte{'x'};
  CHECK_FALSE(decode(encode_kernel_file(sample_key(1), kernel)));
  kernel.kind = ImageKind::kCubin;
  CHECK(decode(encode_kernel_file(sample_key(1), kernel)));
  kernel.image.clear();
  CHECK_FALSE(decode(encode_kernel_file(sample_key(1), kernel)));
}

}  // namespace
}  // namespace annulus::jit
