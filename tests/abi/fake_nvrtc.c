/* An NVRTC that only reports its version. */
#ifndef MAJOR
#define MAJOR 12
#endif
__attribute__((visibility("default"))) int nvrtcVersion(int* major, int* minor) {
  *major = MAJOR;
  *minor = 8;
  return 0;
}
