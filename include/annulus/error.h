#ifndef ANNULUS_ERROR_H_
#define ANNULUS_ERROR_H_

// The one exception type of the library. A message says what failed, with which values, and what
// to do about it. Expected outcomes (a cache miss, no configuration) are values, never errors.

#include "annulus/language.h"

#include <stdexcept>
#include <string>

#include "annulus/version.h"

namespace annulus::inline v0 {

// Stable numbers: they are the return codes of the C interface.
enum class ErrorCode : int {
  kInvalidArgument = 1,  // a shape, stride, pointer, option or combination the call cannot accept
  kUnsupported = 2,      // valid, but nothing here implements it
  kParse = 3,            // text that does not parse; the message carries the column
  kInvalidFile = 4,      // a file whose contents are damaged, hostile or of another format
  kFile = 5,             // a file that cannot be opened, read or written
  kLibrary = 6,          // libcuda, libnvrtc or libnccl missing, too old, or lacking a symbol
  kOutOfMemory = 7,      // host or device memory
  kDevice = 8,           // the CUDA driver refused a call
  kCompile = 9,          // NVRTC rejected a kernel, or a kernel broke a rule (spills, C75xx notes)
  kFault = 10,           // a kernel did something undefined; the context is lost
  kInternal = 11,        // a defect of this library
  kLimit = 12,           // a call that needs more work than its WorkLimit allows
  kCancelled = 13,       // a call that its caller ended early
  kCommunication = 14,   // a rank, or what connects the ranks, failed or is late
};

// "invalid argument", "unsupported", ...
ANNULUS_EXPORT const char* to_string(ErrorCode code);

class ANNULUS_EXPORT Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_ERROR_H_
