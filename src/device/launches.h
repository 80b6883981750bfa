#ifndef ANNULUS_DEVICE_LAUNCHES_H_
#define ANNULUS_DEVICE_LAUNCHES_H_

// Destinations of launches: a stream, which launches at once, or a list, which is run on streams
// later, any number of times. The code that launches works with both:
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

// One parameter of a kernel. Its value is read during the call that receives it.
struct LaunchParameter {
  const void* value;
  std::size_t bytes;
};

constexpr std::size_t kMaxLaunchParameters = 4;

class LaunchSink {
 public:
  // Requires: the kernel's parameters in their order, with the kernel's types.
  template <typename... Parameters>
  void launch(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
              const Parameters&... parameters) {
    static_assert(sizeof...(Parameters) <= kMaxLaunchParameters, "raise kMaxLaunchParameters");
    const LaunchParameter all[] = {{&parameters, sizeof(parameters)}...};
    add(function, grid, block, dynamic_shared_bytes, all);
  }
  // Requires: at most kMaxLaunchParameters parameters.
  virtual void add(const Function& function, Extent grid, Extent block,
                   std::size_t dynamic_shared_bytes,
                   std::span<const LaunchParameter> parameters) = 0;
  // Writes `value` to `words` 32-bit words of device memory of the context, which is 4-byte
  // aligned. The fill is ordered after everything added before, and before everything added later.
  virtual void fill(const Context& context, void* address, unsigned value, std::size_t words) = 0;

 protected:
  ~LaunchSink() = default;
};

// Launches at once, as device::launch does.
class StreamSink final : public LaunchSink {
 public:
  explicit StreamSink(abi::CUstream stream) : stream_(stream) {}
  void add(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
           std::span<const LaunchParameter> parameters) override;
  void fill(const Context& context, void* address, unsigned value, std::size_t words) override;

 private:
  abi::CUstream stream_;
};

// Stores copies of the parameters. After it is filled, any number of threads may run it at the same
// time.
class LaunchList final : public LaunchSink {
 public:
  // Requires: all functions belong to one context.
  void add(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
           std::span<const LaunchParameter> parameters) override;
  void fill(const Context& context, void* address, unsigned value, std::size_t words) override;

  // Queues all launches on `stream` in their order. It allocates nothing and takes no lock of this
  // library. Throws Error{kDevice} if the driver refuses a launch; then the launches before it are
  // queued.
  void run(abi::CUstream stream) const;

  std::size_t size() const { return launches_.size(); }

 private:
  // Tensor maps need an alignment of 64 bytes, more than any other parameter.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // A launch, or a fill if `function` is empty.
  struct Launch {
    Function function;
    Extent grid, block;
    std::size_t dynamic_shared_bytes = 0;
    std::unique_ptr<Line[]> values;
    // The addresses of the copies in `values`.
    std::array<void*, kMaxLaunchParameters> parameters = {};
    void* filled = nullptr;
    unsigned value = 0;
    std::size_t words = 0;
  };
  const Context* context_ = nullptr;  // the context of all functions, which keep it alive
  std::vector<Launch> launches_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_LAUNCHES_H_
