#include "gpu_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "api/impl.h"
#include "base/half.h"
#include "base/random.h"

namespace annulus::bench {
namespace {

// A multiple of 8 keeps copies aligned. The number is not a multiple of a larger power of two, so
// the rows of a tensor differ.
constexpr std::size_t kDrawn = 3'999'976;

std::vector<std::uint8_t> draw(Dtype dtype) {
  const std::size_t size = size_in_bytes(dtype);
  std::vector<std::uint8_t> bytes(kDrawn * size);
  base::Random random(1);
  for (std::size_t i = 0; i < kDrawn; ++i) {
    const std::uint16_t bits = base::from_float(dtype, random.normal());
    // The low bytes come first, so an 8-bit dtype keeps its one byte.
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

}  // namespace

DeviceMemory random_memory(const Device& device, Dtype dtype, std::size_t elements) {
  static std::map<Dtype, std::vector<std::uint8_t>> drawn;  // drawn once for each dtype
  std::vector<std::uint8_t>& host = drawn[dtype];
  if (host.empty()) host = draw(dtype);
  const std::size_t size = size_in_bytes(dtype);
  DeviceMemory memory = device.allocate(elements * size);
  const std::size_t first = std::min(host.size(), memory.bytes());
  device.copy_to_device(memory.data(), host.data(), first);
  const device::Context& context = *api::inside(device).context;
  const device::ContextScope scope(context);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  for (std::size_t filled = first; filled < memory.bytes();) {
    const std::size_t bytes = std::min(filled, memory.bytes() - filled);
    abi::check(context.table(),
               context.table().memcpy_dtod_async(begin + filled, begin, bytes, nullptr),
               "cuMemcpyDtoDAsync");
    filled += bytes;
  }
  return memory;
}

GpuOperands::GpuOperands(const Device& device, const Problem& problem) : device_(device) {
  const auto elements = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return static_cast<std::size_t>(problem.batch * rows * heads * dim);
  };
  const std::size_t q = elements(problem.seq_q, problem.heads, problem.dim_qk);
  const std::size_t k = elements(problem.seq_k, problem.kv_heads, problem.dim_qk);
  const std::size_t v = elements(problem.seq_k, problem.kv_heads, problem.dim_v);
  const std::size_t size = size_in_bytes(problem.dtype);
  inputs_ = random_memory(device, problem.dtype, q + k + v);
  output_elements_ = elements(problem.seq_q, problem.heads, problem.dim_v);
  output_ = device.allocate(output_elements_ * size_in_bytes(problem.output_dtype()));
  auto* const base = static_cast<std::uint8_t*>(inputs_.data());
  operands_.q = base;
  operands_.k = base + q * size;
  operands_.v = base + (q + k) * size;
  operands_.o = output_.data();
  operands_.q_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  operands_.k_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_qk);
  operands_.v_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_v);
  operands_.o_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
}

void GpuOperands::forget_output() {
  const std::vector<std::uint16_t> nan(output_elements_, 0x7fff);
  device_.copy_to_device(operands_.o, nan.data(), nan.size() * sizeof(std::uint16_t));
}

std::vector<std::uint16_t> GpuOperands::output() const {
  std::vector<std::uint16_t> values(output_elements_);
  device_.copy_to_host(values.data(), operands_.o, values.size() * sizeof(std::uint16_t));
  return values;
}

std::string pci_bus(const Device& device) {
  constexpr int kPciDevice = 34, kPciDomain = 50;
  const device::Context& context = *api::inside(device).context;
  const auto attribute = [&](int which) {
    int value = 0;
    context.table().device_get_attribute(&value, which, context.info().ordinal);
    return value;
  };
  return fmt::format("{:04x}:{:02x}:{:02x}.0", attribute(kPciDomain),
                     attribute(abi::kAttributePciBus), attribute(kPciDevice));
}

}  // namespace annulus::bench
