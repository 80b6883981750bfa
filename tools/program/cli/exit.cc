#include "program/cli/exit.h"

namespace annulus::program {
namespace {

constexpr ExitMeaning kExitMeanings[] = {
    {Exit::kOk, "ok"},
    {Exit::kInternal, "internal"},
    {Exit::kUsage, "usage, or larger than this machine's memory"},
    {Exit::kPartial, "partial, or nothing was compared"},
    {Exit::kDevice, "device"},
    {Exit::kInvalidFile, "invalid file"},
    {Exit::kWrongResult, "wrong result"},
};

}  // namespace

std::span<const ExitMeaning> exit_meanings() { return kExitMeanings; }

Exit exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kParse:
    case ErrorCode::kLimit:
      return Exit::kUsage;
    case ErrorCode::kCancelled:
      return Exit::kPartial;
    case ErrorCode::kInvalidFile:
    case ErrorCode::kFile:
      return Exit::kInvalidFile;
    case ErrorCode::kLibrary:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kDevice:
    case ErrorCode::kFault:
    case ErrorCode::kCommunication:
      return Exit::kDevice;
    case ErrorCode::kCompile:
    case ErrorCode::kInternal:
      break;
  }
  return Exit::kInternal;
}

}  // namespace annulus::program
