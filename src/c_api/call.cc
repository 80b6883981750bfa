#include "c_api/call.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>

#include "base/fail.h"
#include "base/of_thread.h"

// A thread-local variable of the C++ library, which <mutex> declares. If a library uses such a
// variable, all its thread-local variables are in the first block of each thread
// (base/of_thread.h), even if the program that opens the library is not C++. Exceptions need some
// of these variables.
namespace std {
extern __thread void* __once_callable [[gnu::tls_model("initial-exec")]];
}

namespace annulus::c_api {
namespace {

static_assert(sizeof(std::uintptr_t) == 8, "a handle is a number of 64 bits");

// The switch has no default, so an enumerator of c.h that is missing in errors.def causes a warning
// here.
constexpr bool is_listed(annulus_status status) {
  switch (status) {
    case ANNULUS_OK:
#define ANNULUS_ERROR(code, c_code, number, text) \
  case ANNULUS_##c_code:                          \
    static_assert(ANNULUS_##c_code == number);
#include "base/errors.def"
#undef ANNULUS_ERROR
      return true;
  }
  return false;
}
static_assert(is_listed(ANNULUS_OK));

// A larger struct_size is a mistake, and reading that far could read beyond the caller's memory.
constexpr std::size_t kMaxStructBytes = 4096;

// The text of this thread's last error: a literal, or the text in its ErrorText.
ANNULUS_THREAD_LOCAL const char* last_error = "";
struct ErrorText {
  std::string text;
  ~ErrorText() { last_error = ""; }
};

annulus_status keep_literal(ErrorCode code, const char* text) noexcept {
  last_error = text;
  return static_cast<annulus_status>(code);
}

annulus_status keep(ErrorCode code, const char* text) noexcept {
  try {
    std::string& kept = base::of_thread<ErrorText>().text;
    kept = text;
    last_error = kept.c_str();
  } catch (...) {
    last_error = "the host is out of memory, and has none for the text of this error";
  }
  return static_cast<annulus_status>(code);
}

std::size_t size_of(const StructName& name, const void* given) {
  if (given == nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "{} is null; give one that was initialised by {}",
               name.name, name.init);
  }
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size) || size % 8 != 0 || size > kMaxStructBytes) {
    base::fail(ErrorCode::kInvalidArgument,
               "struct_size of {} is {}, which no version has; initialise it by {}", name.name,
               size, name.init);
  }
  return size;
}

}  // namespace

// Rethrows the exception that is being handled, to find its type. A failed allocation is
// ANNULUS_OUT_OF_MEMORY. An exception that is not an Error is a defect of this library.
annulus_status failed() noexcept {
  static_cast<void>(*const_cast<void* volatile*>(&std::__once_callable));
  try {
    throw;
  } catch (const Error& error) {
    return keep(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return keep_literal(ErrorCode::kOutOfMemory, "the host is out of memory");
  } catch (const std::length_error&) {
    return keep_literal(ErrorCode::kOutOfMemory, "a count is larger than any memory");
  } catch (const std::exception& error) {
    return keep(ErrorCode::kInternal, error.what());
  } catch (...) {
    return keep_literal(ErrorCode::kInternal, "something unknown was thrown");
  }
}

void read_struct(const StructName& name, const void* given, void* into, std::size_t known_bytes) {
  const std::size_t size = size_of(name, given);
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t at = known_bytes; at < size; ++at) {
    if (bytes[at] == 0) continue;
    base::fail(ErrorCode::kUnsupported,
               "byte {} of {} is set, but this library (" ANNULUS_VERSION_TEXT
               ") has only {} bytes of it; load a newer one, or leave the newer fields zero",
               at, name.name, known_bytes);
  }
  std::memcpy(into, given, std::min(size, known_bytes));
}

std::size_t check_output(const StructName& name, const void* given) { return size_of(name, given); }

void write_struct(void* to, std::size_t bytes, const void* filled, std::size_t known_bytes) {
  constexpr std::size_t kSize = sizeof(std::size_t);  // struct_size itself is not copied
  auto* out = static_cast<unsigned char*>(to);
  const std::size_t both = std::min(bytes, known_bytes);
  std::memcpy(out + kSize, static_cast<const unsigned char*>(filled) + kSize, both - kSize);
  std::memset(out + both, 0, bytes - both);
}

std::string lines(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "\n") + part;
  return text;
}

void check_pointer(const char* name, const void* pointer) {
  if (pointer == nullptr) base::fail(ErrorCode::kInvalidArgument, "{} is null", name);
}

void check_array_count(const char* name, std::size_t count, std::int64_t read) {
  if (count == 0 || count == static_cast<std::size_t>(read)) return;
  base::fail(ErrorCode::kInvalidArgument, "{} has {} entries, but {} are read; give that number",
             name, count, read);
}

bool truth(const char* name, std::int64_t value) {
  if (value != 0 && value != 1) {
    base::fail(ErrorCode::kInvalidArgument, "{} is {}; give 0 or 1", name, value);
  }
  return value == 1;
}

const PlanObject::Lines& PlanObject::lines_of(const PlanInfo& info) const {
  std::lock_guard lock(mutex_);
  const auto [at, first] = lines_.try_emplace(&info);
  if (first) at->second = {lines(info.decisions), lines(info.rejected)};
  return at->second;
}

HandleTable<DeviceObject>& devices() {
  static auto* table =
      new HandleTable<DeviceObject>("device", 0xd1, HandleTable<DeviceObject>::Use::kInItsProcess);
  return *table;
}

HandleTable<PlanObject>& plans() {
  static auto* table =
      new HandleTable<PlanObject>("plan", 0xe3, HandleTable<PlanObject>::Use::kInItsProcess);
  return *table;
}

HandleTable<BoundCall>& bound_calls() {
  static auto* table =
      new HandleTable<BoundCall>("bound call", 0x2d, HandleTable<BoundCall>::Use::kInItsProcess);
  return *table;
}

}  // namespace annulus::c_api

extern "C" {

int annulus_version(void) { return ANNULUS_VERSION; }

const char* annulus_version_text(void) { return ANNULUS_VERSION_TEXT; }

const char* annulus_status_text(int status) {
  return status == ANNULUS_OK ? "ok" : annulus::to_string(static_cast<annulus::ErrorCode>(status));
}

const char* annulus_last_error(void) { return annulus::c_api::last_error; }

}  // extern "C"
