#ifndef ANNULUS_BASE_OF_THREAD_H_
#define ANNULUS_BASE_OF_THREAD_H_

// Variables of which each thread has a copy. The library declares them in these two ways alone,
// because with glibc a plain thread_local variable ends the process if memory is exhausted when a
// thread first uses it.

#include <pthread.h>

#include <memory>
#include <new>

// Declares a variable of threads without a destructor, of a few words. It lies in the block that
// each thread has from its beginning; by default, that of a library which dlopen opened is
// allocated at its first use. A process has about 1500 bytes of such room for all libraries that it
// opens.
#define ANNULUS_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] thread_local

namespace annulus::base {

// For objects with a destructor, which glibc would register with an allocation, and for large ones.
//
// The T of this thread for `Tag`, made at its first use and destroyed when the thread ends. That of
// the main thread stays until the process ends. Throws std::bad_alloc if there is no memory for it,
// or if the process has used up its keys of threads (PTHREAD_KEYS_MAX). The library that calls this
// must never be unmapped (-z nodelete), since the destructor lies in it.
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
