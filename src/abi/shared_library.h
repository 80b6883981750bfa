#ifndef ANNULUS_ABI_SHARED_LIBRARY_H_
#define ANNULUS_ABI_SHARED_LIBRARY_H_

// A shared library opened at run time.

#include <string>

namespace annulus::abi {

class SharedLibrary {
 public:
  SharedLibrary() = default;  // holds nothing
  // `name` is a path, or a bare file name that the loader searches for by its own rules. If it
  // cannot be opened, the object is empty and *problem is the loader's message.
  SharedLibrary(const std::string& name, std::string* problem);
  ~SharedLibrary();
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;

  explicit operator bool() const { return handle_ != nullptr; }
  void* symbol(const char* name) const;  // null if there is no such symbol
  std::string path() const;              // path of the file that the loader chose

 private:
  // Closing releases the handle but never unmaps the code. Drivers leave threads and exit handlers
  // behind, and unmapping their code would crash the process at its end.
  void* handle_ = nullptr;
};

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_SHARED_LIBRARY_H_
