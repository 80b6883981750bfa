#include "program/cli/environment.h"

namespace annulus::program {
namespace {

using base::Environment;

constexpr Variable kVariables[] = {
    {"ANNULUS_CACHE_DIR", &Environment::cache_dir,
     "folder of compiled kernels; 'none' keeps nothing on disk"},
    {"ANNULUS_KERNELS", &Environment::kernels,
     "folders of kernels compiled ahead, ':' between them; 'none': no folder"},
    {"ANNULUS_COMPILE", &Environment::compile,
     "never: no kernel is compiled; missing, the default: kernels that are not on disk are "
     "compiled"},
    {"ANNULUS_TUNED", &Environment::tuned,
     "folders and packs of tuned results, ':' between them; 'none': no folder"},
    {"ANNULUS_DEVICE", &Environment::device,
     "the device if no option names one: cuda:0, sim:sm_80"},
    {"ANNULUS_LOG", &Environment::log, "error, warning, info or debug"},
    {"ANNULUS_LIBRARY_PATH", &Environment::library_path,
     "folders that are searched first for libcuda, libnvrtc, libnccl and the simulator"},
    {"ANNULUS_SIMULATOR_OPTIONS", &Environment::simulator_options,
     "options with which simulated devices start, unless the program sets them: checked=0,seed=3"},
    {"ANNULUS_REQUIRE_GPU", &Environment::require_gpu, "1: a simulated device is an error"},
};

}  // namespace

std::span<const Variable> environment_variables() { return kVariables; }

}  // namespace annulus::program
