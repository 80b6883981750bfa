#ifndef ANNULUS_DEVICE_LAUNCHES_H_
#define ANNULUS_DEVICE_LAUNCHES_H_

// Where launches go: onto a stream at once, or into a list that is put on streams later, as often
// as wanted. Whoever makes launches makes them for either:
//
//   void attend(LaunchSink& to) { to.launch(kernel, {grid}, {128}, 98304, parameters, maps); }
//
//   StreamSink now(stream);  attend(now);
//   LaunchList list;         attend(list);  list.run(stream);

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device/module.h"

namespace annulus::device {

// One parameter of a kernel. The value is read during the call that takes it.
struct LaunchParameter {
  const void* value;
  std::size_t bytes;
};

constexpr std::size_t kMaxLaunchParameters = 4;

class LaunchSink {
 public:
  // The parameters are those of the kernel, in their order and of their types.
  template <typename... Parameters>
  void launch(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
              const Parameters&... parameters) {
    static_assert(sizeof...(Parameters) <= kMaxLaunchParameters, "raise kMaxLaunchParameters");
    const LaunchParameter all[] = {{&parameters, sizeof(parameters)}...};
    add(function, grid, block, dynamic_shared_bytes, all);
  }
  // Requires: at most kMaxLaunchParameters.
  virtual void add(const Function& function, Extent grid, Extent block,
                   std::size_t dynamic_shared_bytes,
                   std::span<const LaunchParameter> parameters) = 0;

 protected:
  ~LaunchSink() = default;
};

// Launches at once, as device::launch.
class StreamSink final : public LaunchSink {
 public:
  explicit StreamSink(abi::CUstream stream) : stream_(stream) {}
  void add(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
           std::span<const LaunchParameter> parameters) override;

 private:
  abi::CUstream stream_;
};

// Keeps copies of the parameters. Once it is filled, any number of threads may run it at a time.
class LaunchList final : public LaunchSink {
 public:
  // Requires: all functions are of one context.
  void add(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
           std::span<const LaunchParameter> parameters) override;

  // Queues all launches on `stream` in their order: no allocation, no lock of ours. Throws
  // Error{kDevice} where the driver refuses one; those before it are queued then.
  void run(abi::CUstream stream) const;

  std::size_t size() const { return launches_.size(); }

 private:
  // Tensor maps want 64 bytes of alignment, more than any other parameter.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Launch {
    Function function;
    Extent grid, block;
    std::size_t dynamic_shared_bytes = 0;
    std::unique_ptr<Line[]> values;
    std::array<void*, kMaxLaunchParameters> parameters = {};  // into values
  };
  std::vector<Launch> launches_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_LAUNCHES_H_
