// Access between devices: which devices may access another device's memory, and copies between
// contexts. Devices of one model are peers of each other, like the GPUs of one machine.

#include <algorithm>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/accesses.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

bool are_peers(const Device& device, const Device& other) {
  return &device != &other && &device.model() == &other.model();
}

std::shared_ptr<Context> find_context(CUcontext context) {
  auto found = state().contexts.find(context);
  if (found == nullptr) throw Refusal{kCudaInvalidContext};
  return found;
}

// The position of `peer` in the context's list. Contexts that were destroyed are removed from the
// list. Requires: the context's mutex is held.
auto place_of(Context& context, const std::shared_ptr<Context>& peer) {
  auto& peers = context.peers;
  std::erase_if(peers, [](const std::weak_ptr<Context>& one) {
    const auto other = one.lock();
    return other == nullptr || other->lost == kCudaContextDestroyed;
  });
  return std::find_if(peers.begin(), peers.end(),
                      [&](const std::weak_ptr<Context>& one) { return one.lock() == peer; });
}

// The memory of the context's device. Throws Refusal if that memory does not hold all of the bytes.
GlobalMemory& memory_of(const Context& context, CUdeviceptr address, std::size_t bytes) {
  GlobalMemory& memory = context.device->memory();
  if (memory.find(address, bytes).end == 0) throw Refusal{kCudaInvalidValue};
  return memory;
}

}  // namespace

CUresult device_can_access_peer(int* can, CUdevice device, CUdevice peer) {
  return guarded([&]() -> CUresult {
    const Device& from = device_at(device);
    const Device& to = device_at(peer);
    if (can == nullptr) return kCudaInvalidValue;
    *can = are_peers(from, to) ? 1 : 0;
    return kCudaSuccess;
  });
}

// Peer access is for kernels of the current context. Copies work without it.
CUresult ctx_enable_peer_access(CUcontext peer, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    const auto other = find_context(peer);
    if (flags != 0) return kCudaInvalidValue;
    if (other == context) return kCudaInvalidContext;
    if (!are_peers(*context->device, *other->device)) return kCudaPeerAccessUnsupported;
    std::lock_guard lock(context->mutex);
    const auto place = place_of(*context, other);
    if (place != context->peers.end()) return kCudaPeerAccessAlreadyEnabled;
    context->peers.push_back(other);
    state().queue.link(*context, *other);
    return kCudaSuccess;
  });
}

CUresult ctx_disable_peer_access(CUcontext peer) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    const auto other = find_context(peer);
    finish(*context);  // kernels that were launched earlier may still access it
    std::lock_guard lock(context->mutex);
    const auto place = place_of(*context, other);
    if (place == context->peers.end()) return kCudaPeerAccessNotEnabled;
    context->peers.erase(place);
    return kCudaSuccess;
  });
}

// Copies between two devices, or between two contexts of one device. The call cannot be captured,
// even if the two contexts are the same: driver 580.159 on an H200 returns
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. CUDA's manual does not state this. A reason may be that a
// node of a graph holds a CUDA_MEMCPY3D, which has no contexts.
CUresult memcpy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    const auto target_context = find_context(to_context);
    const auto source_context = find_context(from_context);
    if (bytes == 0) return kCudaSuccess;
    GlobalMemory& target = memory_of(*target_context, to, bytes);
    const GlobalMemory& source = memory_of(*source_context, from, bytes);
    state().queue.link(*on->context(), *target_context);
    state().queue.link(*on->context(), *source_context);
    Work work = make_work("cuMemcpyPeerAsync",
                          [&target, &source, to, from, bytes](const OperationPointer& operation) {
                            note(operation, AccessKind::kRead, source, from, bytes);
                            note(operation, AccessKind::kWrite, target, to, bytes);
                            target.copy(to, source, from, bytes);
                          });
    on->submit(described(std::move(work), on->context(),
                         bytes_copy(to, kMemoryDevice, from, kMemoryDevice, bytes)));
    return kCudaSuccess;
  });
}

// The copy comes after all earlier work of the three contexts and before all later work.
CUresult memcpy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                     std::size_t bytes) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    const auto context = live_context();
    synchronize(*context);
    synchronize(*find_context(to_context));
    synchronize(*find_context(from_context));
    const CUresult code = memcpy_peer_async(to, to_context, from, from_context, bytes, nullptr);
    return code != kCudaSuccess ? code : synchronize(*context);
  });
}

}  // namespace annulus::simulator::driver::entry
