#ifndef ANNULUS_BASE_OF_THREAD_H_
#define ANNULUS_BASE_OF_THREAD_H_

// Variables of which each thread has its own copy. The library declares them only in these two
// ways. With glibc, a plain thread_local variable ends the process if memory is exhausted when a
// thread first uses it.

#include <pthread.h>

#include <memory>
#include <new>

// Declares a thread variable without a destructor, of a few words. It is in the block that each
// thread has from its beginning. By default, the variables of a library that dlopen() opened are
// allocated at their first use. A process has about 1500 bytes of it for all such libraries.
#define ANNULUS_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] thread_local

namespace annulus::base {

// For large types, and types with destructors, which glibc would register with an allocation.
//
// Returns this thread's T for `Tag`. It is created at its first use and destroyed when the thread
// ends; in the main thread it stays until the process ends. Throws std::bad_alloc if there is no
// memory, or if the process has used up its thread keys (PTHREAD_KEYS_MAX). The library that calls
// this function must never be unmapped (-z nodelete), because it contains the destructor.
template <typename T, typename Tag = T>
T& of_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (pthread_key_create(&made, [](void* object) { delete static_cast<T*>(object); }) != 0) {
      throw std::bad_alloc();
    }
    return made;
  }();
  if (void* const object = pthread_getspecific(key)) return *static_cast<T*>(object);
  auto made = std::make_unique<T>();
  if (pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
  return *made.release();
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_OF_THREAD_H_
