// What the build of ggml makes of its version.
#define GGML_VERSION "0"
#define GGML_COMMIT "0"
