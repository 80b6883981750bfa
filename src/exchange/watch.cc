#include "exchange/watch.h"

#include <chrono>
#include <utility>

#include "base/no_signals.h"

namespace annulus::exchange {

Watch::Watch(std::shared_ptr<Bell> bell, std::function<bool()> look)
    : bell_(std::move(bell)), look_(std::move(look)) {
  const base::NoSignals quiet;
  thread_ = std::thread([this] { watch(); });
}

Watch::~Watch() {
  ends_ = true;
  bell_->ring();
  thread_.join();
}

void Watch::watch() {
  constexpr auto kPause = std::chrono::milliseconds(1);
  while (!ends_) {
    const std::uint32_t before = bell_->rung();
    if (look_()) {
      std::this_thread::sleep_for(kPause);
    } else if (!ends_) {
      bell_->wait(before);
    }
  }
}

}  // namespace annulus::exchange
