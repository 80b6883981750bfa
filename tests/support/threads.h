#ifndef ANNULUS_TESTS_SUPPORT_THREADS_H_
#define ANNULUS_TESTS_SUPPORT_THREADS_H_

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace annulus::test {

// Calls each(i) for every i below `count`, each call on a separate thread. After all threads have
// ended, it throws the first exception of the threads in order of i. Otherwise an exception that
// leaves a std::thread would end the process, and with it all later tests.
template <typename Each>
void on_threads(std::size_t count, const Each& each) {
  std::vector<std::exception_ptr> thrown(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        each(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& one : thrown) {
    if (one != nullptr) std::rethrow_exception(one);
  }
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_THREADS_H_
