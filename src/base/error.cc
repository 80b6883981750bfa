#include "annulus/error.h"

#include "annulus/types.h"

namespace annulus::inline v0 {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kParse:
      return "parse error";
    case ErrorCode::kInvalidFile:
      return "invalid file";
    case ErrorCode::kFile:
      return "file error";
    case ErrorCode::kLibrary:
      return "library error";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kDevice:
      return "device error";
    case ErrorCode::kCompile:
      return "compile error";
    case ErrorCode::kFault:
      return "kernel fault";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return "fp16";
    case Dtype::kBfloat16:
      return "bf16";
    case Dtype::kFloat32:
      return "fp32";
    case Dtype::kFloat8E4M3:
      return "e4m3";
  }
  return "unknown dtype";
}

const char* to_string(LseBase base) { return base == LseBase::kNatural ? "natural" : "two"; }

}  // namespace annulus::inline v0
