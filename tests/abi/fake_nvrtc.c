/* An NVRTC that knows its version and nothing else. */
__attribute__((visibility("default"))) int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 8;
  return 0;
}
