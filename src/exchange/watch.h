#ifndef ANNULUS_EXCHANGE_WATCH_H_
#define ANNULUS_EXCHANGE_WATCH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "exchange/channel.h"

namespace annulus::exchange {

// A thread that calls look() periodically while something is in progress, and sleeps otherwise.
class Watch {
 public:
  // look() returns whether something is in progress. It is called after each ring of the bell, and
  // then every millisecond as long as it returns true. It must not throw.
  Watch(std::shared_ptr<Bell> bell, std::function<bool()> look);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void watch();

  const std::shared_ptr<Bell> bell_;
  const std::function<bool()> look_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_WATCH_H_
