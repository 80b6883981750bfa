#ifndef ANNULUS_TESTS_SUPPORT_NVRTC_H_
#define ANNULUS_TESTS_SUPPORT_NVRTC_H_

#include <doctest/doctest.h>

#include <memory>

#include "abi/libraries.h"
#include "base/env.h"

namespace annulus::test {

// NVRTC, or null if it is missing. Without NVRTC the test passes with a message.
inline std::shared_ptr<const abi::NvrtcLibrary> nvrtc() {
  auto library = std::make_shared<abi::NvrtcLibrary>(
      abi::find_nvrtc(abi::default_search(base::read_environment())));
  if (!library->report.usable()) {
    MESSAGE("skipped, there is no NVRTC here: " << library->report.problem);
    return nullptr;
  }
  return library;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_NVRTC_H_
