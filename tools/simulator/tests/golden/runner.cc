#include "golden/runner.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "annulus/types.h"
#include "base/fail.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/simulator.h"
#include "device/stream.h"

namespace annulus::golden {
namespace {

double value_of(Kind kind, std::uint64_t bits) {
  switch (kind) {
    case Kind::kF16:
      return decode16(kHalfFormat, static_cast<std::uint16_t>(bits));
    case Kind::kBf16:
      return decode16(kBfloatFormat, static_cast<std::uint16_t>(bits));
    case Kind::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Kind::kF64:
      return std::bit_cast<double>(bits);
    default:
      return 0;
  }
}

bool is_float(Kind kind) {
  return kind == Kind::kF16 || kind == Kind::kBf16 || kind == Kind::kF32 || kind == Kind::kF64;
}

double largest(Kind kind) {
  if (kind == Kind::kF16) return 65504.0;
  return kind == Kind::kF64 ? std::numeric_limits<double>::max() : 0x1.fffffep127;
}

bool near(const Word& word, double got) {
  if (std::isnan(word.value)) return std::isnan(got);
  if (std::isnan(got)) return false;
  const double limit = largest(word.kind);
  // If a value is within the tolerance of the limit, both infinity and a number are accepted.
  if (std::isinf(got))
    return std::signbit(got) == std::signbit(word.value) &&
           std::fabs(word.value) + word.tolerance >= limit;
  if (std::isinf(word.value) || std::fabs(word.value) > limit * 1.001) return false;
  if (word.value == 0 && got == 0 && word.tolerance == 0) return true;
  return std::fabs(got - word.value) <= word.tolerance;
}

// `got` has the width of the word's kind.
bool same(const Word& word, std::uint64_t got) {
  if (word.any || got == word.bits) return true;
  if (word.tolerance >= 0) return near(word, value_of(word.kind, got));
  if (is_float(word.kind)) {
    return std::isnan(value_of(word.kind, got)) && std::isnan(value_of(word.kind, word.bits));
  }
  if (word.kind == Kind::kF16x2 || word.kind == Kind::kBf16x2) {
    const Kind half = word.kind == Kind::kF16x2 ? Kind::kF16 : Kind::kBf16;
    const Word low{word.bits & 0xffff, half};
    const Word high{word.bits >> 16, half};
    return same(low, got & 0xffff) && same(high, got >> 16);
  }
  return false;
}

std::string show(Kind kind, std::uint64_t bits) {
  const std::uint64_t keep = bytes_of(kind) == 8 ? ~0ull : (1ull << bytes_of(kind) * 8) - 1;
  std::string text = fmt::format("0x{:0{}x}", bits & keep, bytes_of(kind) * 2);
  if (is_float(kind)) text += fmt::format(" ({:.9g})", value_of(kind, bits & keep));
  return text;
}

Mismatch describe(const Golden& golden, std::size_t index, const Word& word, std::uint64_t got) {
  Mismatch mismatch{index, got, word.bits, {}};
  const std::string wanted = word.tolerance >= 0
                                 ? fmt::format("{:.9g} +- {:.3g}", word.value, word.tolerance)
                                 : show(word.kind, word.bits);
  mismatch.text = fmt::format("{}: word {}: got {}, expected {}", golden.name, index,
                              show(word.kind, got), wanted);
  for (std::size_t k = 0; k < golden.operands.size(); ++k) {
    mismatch.text +=
        fmt::format("{} {}", k ? "," : "; operands",
                    show(golden.operands[k], golden.in[index * golden.operands.size() + k]));
  }
  return mismatch;
}

void compare(const Golden& golden, Outcome& outcome) {
  const int bytes = golden.word_bytes;
  const std::size_t count = golden.out_words * 8 / static_cast<std::size_t>(bytes);
  std::vector<Word> expected(count);
  const std::uint64_t mask = bytes == 8 ? ~0ull : (1ull << bytes * 8) - 1;
  for (Word& word : expected) word.bits = golden.filler & mask;
  golden.define(golden, golden.in, expected);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t got =
        bytes == 8 ? outcome.out[i] : (outcome.out[i / 2] >> i % 2 * 32) & mask;
    const Word& word = expected[i];
    const int width = word.kind == Kind::kBits64 ? bytes : bytes_of(word.kind);
    const std::uint64_t inside = width == 8 ? ~0ull : (1ull << width * 8) - 1;
    // Bytes outside of the result must still be the filler.
    const bool untouched = (got & ~inside) == (golden.filler & mask & ~inside);
    if (untouched && same(word, got & inside)) continue;
    if (outcome.mismatches++ < 4) outcome.first.push_back(describe(golden, i, word, got));
  }
}

void encode(const device::Context& context, const Tensor& tensor, abi::CUdeviceptr address,
            abi::CUtensorMap& map) {
  const auto encode_tiled = context.driver().table().tensor_map_encode_tiled;
  if (encode_tiled == nullptr) base::fail(ErrorCode::kDevice, "the driver knows no tensor maps");
  std::vector<std::uint32_t> element_strides = tensor.element_strides;
  if (element_strides.empty()) element_strides.assign(tensor.dims.size(), 1);
  // A driver refuses a null pointer, and the data pointer of an empty vector may be null.
  std::vector<std::uint64_t> strides = tensor.strides;
  strides.resize(tensor.dims.size());
  const device::ContextScope scope(context);
  const abi::CUresult code =
      encode_tiled(&map, tensor.type, static_cast<std::uint32_t>(tensor.dims.size()),
                   reinterpret_cast<void*>(address), tensor.dims.data(), strides.data(),
                   tensor.box.data(), element_strides.data(), 0, tensor.swizzle, 0, tensor.fill);
  if (code != abi::kCudaSuccess) {
    base::fail(ErrorCode::kDevice, "cuTensorMapEncodeTiled returns {}", code);
  }
}

}  // namespace

bool may_vary(const Word& word) {
  if (word.any || word.tolerance >= 0) return true;
  if (is_float(word.kind)) return std::isnan(value_of(word.kind, word.bits));
  if (word.kind != Kind::kF16x2 && word.kind != Kind::kBf16x2) return false;
  const Kind half = word.kind == Kind::kF16x2 ? Kind::kF16 : Kind::kBf16;
  return std::isnan(value_of(half, word.bits & 0xffff)) ||
         std::isnan(value_of(half, word.bits >> 16));
}

bool runs_on(const Golden& golden, const device::Context& context) {
  return !golden.hopper || context.info().major == 9;
}

std::string program_text(const Golden& golden, const std::string& ptx_folder) {
  if (!golden.text.empty()) return golden.text;
  const std::string path = fmt::format("{}/{}.ptx", ptx_folder, golden.name);
  std::ifstream file(path);
  if (!file) base::fail(ErrorCode::kFile, "cannot read {}; name its folder with --ptx", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Outcome run(const device::ContextPointer& context, const Golden& golden,
            const std::string& ptx_folder) {
  Outcome outcome;
  try {
    const auto module = device::Module::load(context, program_text(golden, ptx_folder));
    const device::Function kernel = module->function("golden");
    const device::Buffer in = device::upload<std::uint64_t>(context, golden.in);
    std::vector<std::uint64_t> words(golden.out_words, golden.filler);
    const device::Buffer out = device::upload<std::uint64_t>(context, words);
    abi::CUdeviceptr in_address = in.address();
    abi::CUdeviceptr out_address = out.address();
    std::vector<void*> parameters = {&in_address, &out_address};
    std::vector<std::vector<std::byte>> extra = golden.extra;
    for (auto& bytes : extra) parameters.push_back(bytes.data());
    std::vector<abi::CUtensorMap> maps(golden.tensors.size());
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const Tensor& tensor = golden.tensors[i];
      encode(*context, tensor, (tensor.of_out ? out_address : in_address) + tensor.offset, maps[i]);
      parameters.push_back(&maps[i]);
    }
    device::launch(kernel, golden.grid, golden.block, golden.shared_bytes, nullptr,
                   parameters.data());
    device::synchronize(*context, nullptr);
    device::copy_to_host(*context, words.data(), out.address(), words.size() * 8);
    outcome.out = std::move(words);
    compare(golden, outcome);
  } catch (const Error& error) {
    const std::string fault = device::simulator_fault(*context);
    outcome.error =
        fmt::format("{}: {}{}", golden.name, error.what(), fault.empty() ? "" : " " + fault);
    device::clear_simulator_fault(*context);
  }
  return outcome;
}

}  // namespace annulus::golden
