// The version header that the build of ggml generates.
#define GGML_VERSION "0"
#define GGML_COMMIT "0"
