/* Queries about the installation in C: the libraries, the devices of the driver, the default device
 * and the kernels on disk. */

#include <annulus/c.h>
#include <annulus/c_tools.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"

static void libraries(annulus_installation* installation) {
  annulus_library_report report = ANNULUS_LIBRARY_REPORT_INIT;
  int32_t library = 0;
  for (library = ANNULUS_LIBRARY_CUDA; library <= ANNULUS_LIBRARY_NCCL; ++library) {
    CHECK_OK(annulus_installation_get_library(installation, library, &report));
    CHECK(strlen(report.name) > 0);
    CHECK(report.usable == (strlen(report.problem) == 0));
    CHECK(report.usable == 0 || strlen(report.path) > 0);
    CHECK(strstr(report.tried, ": ") != NULL);
  }
  CHECK_OK(annulus_installation_get_library(installation, ANNULUS_LIBRARY_SIMULATOR, &report));
  CHECK(report.usable == 1 && report.simulated == 1);
  CHECK(strcmp(report.name, "the simulator") == 0);
  CHECK_OK(annulus_installation_get_library(installation, ANNULUS_LIBRARY_NVRTC, &report));
  CHECK(report.usable == 1 && report.simulated == 0 && report.version >= 11020);
  CHECK(strlen(report.version_text) >= 4);
  CHECK_FAILS(annulus_installation_get_library(installation, 4, &report), ANNULUS_INVALID_ARGUMENT,
              "library 4 of 4");
  CHECK_FAILS(annulus_installation_get_library(installation, -1, &report), ANNULUS_INVALID_ARGUMENT,
              "library -1");
  CHECK_FAILS(annulus_installation_get_library(installation, 0, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_library_report is null");
}

static void device_list(annulus_installation* installation, const annulus_installation_info* info) {
  annulus_listed_device device = ANNULUS_LISTED_DEVICE_INIT;
  size_t i = 0;
  CHECK((info->devices == 0) == (strlen(info->device_problem) > 0));
  for (i = 0; i < info->devices; ++i) {
    CHECK_OK(annulus_installation_get_device(installation, i, &device));
    CHECK(strncmp(device.name, "cuda:", 5) == 0 && strlen(device.description) > 0);
    CHECK(device.compute_capability >= 50 && device.multiprocessors > 0);
    CHECK(device.shared_bytes_per_block > 0 && device.memory_bytes > 0);
  }
  CHECK_FAILS(annulus_installation_get_device(installation, i, &device), ANNULUS_INVALID_ARGUMENT,
              "device ");
}

static void density(void) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  double value = 0;
  problem.seq_q = problem.seq_k = 4;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = "causal";
  CHECK_OK(annulus_problem_density(&problem, NULL, &value));
  CHECK(value == 10.0 / 16);
  CHECK_FAILS(annulus_problem_density(&problem, NULL, NULL), ANNULUS_INVALID_ARGUMENT, "density");
  problem.dim_qk = 33;
  CHECK_FAILS(annulus_problem_density(&problem, NULL, &value), ANNULUS_UNSUPPORTED, "33");
}

void test_installation(void) {
  annulus_installation* installation = NULL;
  annulus_installation_info info = ANNULUS_INSTALLATION_INFO_INIT;
  CHECK_OK(annulus_installation_examine(NULL, &installation));
  CHECK_OK(annulus_installation_get(installation, &info));
  CHECK(strlen(info.default_device) > 5 && strlen(info.default_reason) > 5);
  CHECK(info.cache_usable == 1 && strlen(info.cache_problem) == 0);
  CHECK(strcmp(info.cache_dir, getenv("ANNULUS_CACHE_DIR")) == 0);
  CHECK(info.kernel_folders != NULL);
  CHECK(info.cached_kernels >= 0 && info.cached_bytes >= info.cached_kernels);
  libraries(installation);
  device_list(installation, &info);
  CHECK_FAILS(annulus_installation_get(installation, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_installation_info is null");
  CHECK_OK(annulus_installation_destroy(installation));
  CHECK_FAILS(annulus_installation_get(installation, &info), ANNULUS_INVALID_ARGUMENT,
              "given back");
  CHECK_FAILS(annulus_installation_examine(NULL, NULL), ANNULUS_INVALID_ARGUMENT, "installation");

  CHECK_OK(annulus_installation_examine("", &installation));
  CHECK_OK(annulus_installation_get(installation, &info));
  CHECK(info.cache_usable == 0 && strlen(info.cache_dir) == 0);
  CHECK_OK(annulus_installation_destroy(installation));
  density();
}
