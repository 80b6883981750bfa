/* Wrong libraries in the place of the simulator: with another version of the interface, without the
 * functions of a driver, or without the functions of a simulator. */
#include "annulus/simulator.h"

#ifdef VERSION
int annulusSimulatorVersion(int* version) {
  *version = VERSION;
  return 0;
}
#endif

int annulusSimulatorEntry(const char* name, void** entry) {
  (void)name;
  *entry = NULL;
  return 500;
}
