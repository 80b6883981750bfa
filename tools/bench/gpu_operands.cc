#include "gpu_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/impl.h"
#include "base/half.h"
#include "base/random.h"

namespace annulus::bench {
namespace {

// Standard normal numbers in bf16. A few million of them are repeated, which is quick to make and
// still random to a kernel that never holds as many at a time.
std::vector<std::uint16_t> random_values(std::size_t count) {
  constexpr std::size_t kDistinct = 3'999'971;
  std::vector<std::uint16_t> values(count);
  base::Random random(1);
  const std::size_t drawn = std::min(count, kDistinct);
  for (std::size_t i = 0; i < drawn; ++i) values[i] = base::float_to_bf16(random.normal());
  for (std::size_t i = drawn; i < count; ++i) values[i] = values[i - drawn];
  return values;
}

}  // namespace

GpuOperands::GpuOperands(const Device& device, const Problem& problem) : device_(device) {
  const auto elements = [&](std::int64_t heads) {
    return static_cast<std::size_t>(problem.batch * problem.seq_q * heads * problem.dim_qk);
  };
  const std::size_t q = elements(problem.heads), kv = elements(problem.kv_heads);
  output_elements_ = q;
  memory_ = device.allocate((2 * q + 2 * kv) * sizeof(std::uint16_t));
  const std::vector<std::uint16_t> host = random_values(q + 2 * kv);
  device.copy_to_device(memory_.data(), host.data(), host.size() * sizeof(std::uint16_t));
  auto* const base = static_cast<std::uint16_t*>(memory_.data());
  operands_.q = base;
  operands_.k = base + q;
  operands_.v = base + q + kv;
  operands_.o = base + q + 2 * kv;
  operands_.q_strides = operands_.o_strides =
      Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  operands_.k_strides = operands_.v_strides =
      Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_v);
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
