// The target of the test of replay.cc: it fails if an input is the bytes from 0 to 255.

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 256) return 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] != i) return 0;
  }
  annulus::fuzz::wrong("the input is the bytes from 0 to 255");
}
