/* A simulator's library as an installation may have it by mistake: of another version of the
 * interface, without what a driver needs, or without what makes it a simulator. */
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
