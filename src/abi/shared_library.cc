#include "abi/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace annulus::abi {

SharedLibrary::SharedLibrary(const std::string& name, std::string* problem)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
  if (handle_ != nullptr) return;
  const char* text = dlerror();
  *problem = text != nullptr ? text : "the loader gave no reason";
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr)
    return {};
  return map->l_name;
}

}  // namespace annulus::abi
