/* Shared libraries that pretend to be the driver, for the tests of abi/libraries.h:
 *   (plain)   every required symbol, version 13.0
 *   OLD       every required symbol, version 10.2
 *   LACKING   version 13.0 without cuLaunchKernel
 * Nothing but cuDriverGetVersion is ever called. */
#define FAKE __attribute__((visibility("default")))

#define REQUIRED(member, symbol, parameters) \
  FAKE int symbol(void) { return 0; }
#define OPTIONAL(member, symbol, parameters)
#define cuDriverGetVersion renamed_version
#ifdef LACKING
#define cuLaunchKernel renamed_launch
#endif
#include "abi/cuda.def"
#undef cuDriverGetVersion

#ifdef OLD
enum { kVersion = 10020 };
#else
enum { kVersion = 13000 };
#endif

FAKE int cuDriverGetVersion(int* version) {
  *version = kVersion;
  return 0;
}
