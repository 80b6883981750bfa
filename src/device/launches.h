#ifndef ANNULUS_DEVICE_LAUNCHES_H_
#define ANNULUS_DEVICE_LAUNCHES_H_

// Destinations of launches: a stream at once, or a list that is put on streams later, any number of
// times. Code that launches serves both:
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
  // Requires: the kernel's parameters, in their order and of their types.
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
  // Writes `value` over `words` words of device memory of the context, 4-byte aligned, after what
  // was added before and before what is added later.
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

// Keeps copies of the parameters. Once it is filled, any number of threads may run it at a time.
class LaunchList final : public LaunchSink {
 public:
  // Requires: all functions are of one context.
  void add(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
           std::span<const LaunchParameter> parameters) override;
  void fill(const Context& context, void* address, unsigned value, std::size_t words) override;

  // Queues all launches on `stream` in their order. It allocates nothing and takes no lock of this
  // library. Throws Error{kDevice} where the driver refuses a launch; the launches before it are
  // queued then.
  void run(abi::CUstream stream) const;

  std::size_t size() const { return launches_.size(); }

 private:
  // Tensor maps need 64 bytes of alignment, more than any other parameter.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // A launch, or where there is no function, words to fill.
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
  const Context* context_ = nullptr;  // of all functions, which keep it
  std::vector<Launch> launches_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_LAUNCHES_H_
