#include "program/run/operands.h"

namespace annulus::program {

DeviceOperands upload(const Device& device, const HostTensor& q, const HostTensor& k,
                      const HostTensor& v, const HostTensor& o) {
  const auto copy = [&](const void* from, std::size_t bytes) {
    DeviceMemory to = device.allocate(bytes);
    device.copy_to_device(to.data(), from, bytes);
    return to;
  };
  const auto copy_scales = [&](const HostTensor& tensor, DeviceMemory& to) {
    if (tensor.scales.empty()) return static_cast<const float*>(nullptr);
    to = copy(tensor.scales.data(), tensor.scales.size() * sizeof(float));
    return static_cast<const float*>(to.data());
  };
  DeviceOperands made;
  made.q = copy(q.data(), q.bytes());
  made.k = copy(k.data(), k.bytes());
  made.v = copy(v.data(), v.bytes());
  made.o = copy(o.data(), o.bytes());
  made.lse = device.allocate(static_cast<std::size_t>(o.batch * o.heads * o.rows) * sizeof(float));
  Operands& operands = made.operands;
  operands.q = made.q.data();
  operands.k = made.k.data();
  operands.v = made.v.data();
  operands.o = made.o.data();
  operands.lse = static_cast<float*>(made.lse.data());
  operands.q_strides = q.strides();
  operands.k_strides = k.strides();
  operands.v_strides = v.strides();
  operands.o_strides = o.strides();
  operands.scale_q = copy_scales(q, made.scale_q);
  operands.scale_k = copy_scales(k, made.scale_k);
  operands.scale_v = copy_scales(v, made.scale_v);
  return made;
}

HostInputs host_inputs(const HostTensor& q, const HostTensor& k, const HostTensor& v) {
  const auto scales = [](const HostTensor& tensor) {
    return tensor.scales.empty() ? nullptr : tensor.scales.data();
  };
  return {.q = q.data(),
          .k = k.data(),
          .v = v.data(),
          .q_strides = q.strides(),
          .k_strides = k.strides(),
          .v_strides = v.strides(),
          .scale_q = scales(q),
          .scale_k = scales(k),
          .scale_v = scales(v)};
}

}  // namespace annulus::program
