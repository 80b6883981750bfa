#ifndef ANNULUS_C_INSTALLATION_H_
#define ANNULUS_C_INSTALLATION_H_

// The C interface of annulus/installation.h: what is installed on this machine, and which device
// annulus_device_open would take. The conventions are those at the top of annulus/c.h.
//
//   annulus_installation* installation = NULL;
//   annulus_library_report nvrtc = ANNULUS_LIBRARY_REPORT_INIT;
//   annulus_installation_examine(NULL, &installation);
//   annulus_installation_get_library(installation, ANNULUS_LIBRARY_NVRTC, &nvrtc);
//   if (!nvrtc.usable) explain(nvrtc.problem);

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_installation annulus_installation;

// Looks at everything once: libraries, the devices of the CUDA driver, which it initialises, and a
// folder of compiled kernels (null: as annulus_device_options), which it makes where it is missing.
// Opens no device. What is missing or unfit is told, and no error.
ANNULUS_EXPORT annulus_status annulus_installation_examine(const char* cache_dir,
                                                           annulus_installation** installation);
ANNULUS_EXPORT annulus_status annulus_installation_destroy(annulus_installation* installation);

typedef struct annulus_installation_info {
  size_t struct_size;
  // What annulus_device_open takes where no name is given, and why. An empty name: ANNULUS_DEVICE
  // names no device, and the reason says what is wrong with it.
  const char* default_device;
  const char* default_reason;
  const char* device_problem;  // why there are no devices; empty where there are
  const char* cache_dir;       // empty: no kernels are kept on disk
  const char* cache_problem;   // why the folder is not used; empty where it is
  size_t devices;              // of the CUDA driver
  int64_t cached_kernels;
  int64_t cached_bytes;
  int64_t cache_usable;  // 0 or 1
  // Lines: how many kernels, ": ", and of which origin (annulus_device_info.kernel_origin).
  const char* cached_origins;
  // Lines: folders of kernels compiled ahead that exist (annulus_device_options.kernels_path), ":
  // ", and how many kernels, or why the folder is not used.
  const char* kernel_folders;
} annulus_installation_info;

#define ANNULUS_INSTALLATION_INFO_INIT \
  { sizeof(annulus_installation_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL }

ANNULUS_EXPORT annulus_status annulus_installation_get(annulus_installation* installation,
                                                       annulus_installation_info* info);

typedef enum annulus_library {
  ANNULUS_LIBRARY_CUDA = 0,       // the driver, for devices named cuda:N
  ANNULUS_LIBRARY_SIMULATOR = 1,  // for devices named sim:...
  ANNULUS_LIBRARY_NVRTC = 2,      // for both
  ANNULUS_LIBRARY_NCCL = 3        // for rings of several GPUs
} annulus_library;

typedef struct annulus_library_report {
  size_t struct_size;
  const char* name;          // "the CUDA driver", "NVRTC", ...
  const char* path;          // of the file that was opened; empty: none
  const char* version_text;  // "13.0"
  const char* problem;       // empty: usable. Else what is wrong and what to do about it
  const char* absent;        // lines: optional symbols that it lacks
  const char* tried;         // lines: where it was looked for, ": ", and with which outcome
  int32_t version;           // as the library says; 0: not asked
  int32_t usable;            // 0 or 1
  int64_t simulated;         // 0 or 1: it is the simulator's
} annulus_library_report;

#define ANNULUS_LIBRARY_REPORT_INIT \
  { sizeof(annulus_library_report), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_library(annulus_installation* installation,
                                                               int32_t library,
                                                               annulus_library_report* report);

// A device as its driver describes it.
typedef struct annulus_listed_device {
  size_t struct_size;
  const char* name;            // as annulus_device_options takes it
  const char* description;     // what the driver calls it
  int32_t compute_capability;  // 80, 90, ...
  int32_t simulated;           // 0 or 1: of a simulator that stands in for libcuda.so.1
  int64_t multiprocessors;
  int64_t shared_bytes_per_block;
  int64_t memory_bytes;
} annulus_listed_device;

#define ANNULUS_LISTED_DEVICE_INIT \
  { sizeof(annulus_listed_device), NULL, NULL, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_installation_get_device(annulus_installation* installation,
                                                              size_t index,
                                                              annulus_listed_device* device);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_INSTALLATION_H_
