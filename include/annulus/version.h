#ifndef ANNULUS_VERSION_H_
#define ANNULUS_VERSION_H_

// The version of the headers a program was compiled with, and the export macro.

#define ANNULUS_VERSION_MAJOR 0
#define ANNULUS_VERSION_MINOR 1
#define ANNULUS_VERSION_PATCH 0
#define ANNULUS_VERSION \
  (ANNULUS_VERSION_MAJOR * 10000 + ANNULUS_VERSION_MINOR * 100 + ANNULUS_VERSION_PATCH)
#define ANNULUS_VERSION_TEXT "0.1.0"

#define ANNULUS_EXPORT __attribute__((visibility("default")))

#endif  // ANNULUS_VERSION_H_
