/* A plain C program for the CUDA Driver API. It does not use Annulus: it opens libcuda.so.1,
 * loads PTX, adds two vectors and checks the sum.
 *
 *   vector_add [PATH OF libcuda.so.1] [device ordinal]
 *
 * Exit status: 0 right, 1 wrong or refused, 2 no driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDA_H
#include <cuda.h>
#else
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
#endif

#define COUNT 1000

static const char* const kPtx =
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [a];\n"
    "  ld.param.u64 %rd2, [b];\n"
    "  ld.param.u64 %rd3, [sum];\n"
    "  ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x;\n"
    "  mov.u32 %r3, %ntid.x;\n"
    "  mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r5, %r1;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %rd4, %r5, 4;\n"
    "  add.s64 %rd5, %rd1, %rd4;\n"
    "  add.s64 %rd6, %rd2, %rd4;\n"
    "  add.s64 %rd7, %rd3, %rd4;\n"
    "  ld.global.f32 %f1, [%rd5];\n"
    "  ld.global.f32 %f2, [%rd6];\n"
    "  add.f32 %f3, %f1, %f2;\n"
    "  st.global.f32 [%rd7], %f3;\n"
    "done:\n"
    "  ret;\n"
    "}\n";

static void* library;
static CUresult (*get_error_name)(CUresult, const char**);

/* Returns the function with that name, or ends the program. */
static void* need(const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "no %s\n", name);
    exit(2);
  }
  return found;
}

static void check(CUresult code, const char* call) {
  const char* name = "?";
  if (code == 0) return;
  get_error_name(code, &name);
  fprintf(stderr, "%s: %s (%d)\n", call, name, (int)code);
  exit(1);
}

/* ISO C has no conversion from void* to a function pointer. POSIX has it, in this form. */
#define LOAD(variable, name) *(void**)(&variable) = need(name)

int main(int argc, char** argv) {
  CUresult (*init)(unsigned);
  CUresult (*get_proc_address)(const char*, void**, int, unsigned long long, void*);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*device_name)(char*, int, CUdevice);
  CUresult (*context_create)(CUcontext*, unsigned, CUdevice);
  CUresult (*context_destroy)(CUcontext);
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*release)(CUdeviceptr);
  CUresult (*to_device)(CUdeviceptr, const void*, size_t);
  CUresult (*to_host)(void*, CUdeviceptr, size_t);
  CUresult (*load)(CUmodule*, const void*, unsigned, void*, void**);
  CUresult (*function_of)(CUfunction*, CUmodule, const char*);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**);
  CUresult (*synchronize)(void);
  CUresult (*unload)(CUmodule);
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUdeviceptr da, db, dsum;
  static float a[COUNT], b[COUNT], sum[COUNT];
  char name[128];
  unsigned n = COUNT;
  void* parameters[4];
  int i;

  library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  LOAD(get_error_name, "cuGetErrorName");
  LOAD(init, "cuInit");
  LOAD(get_proc_address, "cuGetProcAddress_v2");
  LOAD(device_get, "cuDeviceGet");
  LOAD(device_name, "cuDeviceGetName");
  LOAD(context_create, "cuCtxCreate_v2");
  LOAD(context_destroy, "cuCtxDestroy_v2");
  LOAD(allocate, "cuMemAlloc_v2");
  LOAD(release, "cuMemFree_v2");
  LOAD(load, "cuModuleLoadDataEx");
  LOAD(function_of, "cuModuleGetFunction");
  LOAD(launch, "cuLaunchKernel");
  LOAD(synchronize, "cuCtxSynchronize");
  LOAD(unload, "cuModuleUnload");
  /* The CUDA runtime also uses a name without suffix, and a version. */
  check(get_proc_address("cuMemcpyHtoD", (void**)&to_device, 13000, 0, NULL), "cuGetProcAddress");
  check(get_proc_address("cuMemcpyDtoH", (void**)&to_host, 13000, 0, NULL), "cuGetProcAddress");

  check(init(0), "cuInit");
  check(device_get(&device, argc > 2 ? atoi(argv[2]) : 0), "cuDeviceGet");
  check(device_name(name, sizeof(name), device), "cuDeviceGetName");
  check(context_create(&context, 0, device), "cuCtxCreate");
  check(load(&module, kPtx, 0, NULL, NULL), "cuModuleLoadDataEx");
  check(function_of(&add, module, "add"), "cuModuleGetFunction");
  for (i = 0; i < COUNT; ++i) {
    a[i] = (float)i;
    b[i] = 0.25f * (float)(COUNT - i);
  }
  check(allocate(&da, sizeof(a)), "cuMemAlloc");
  check(allocate(&db, sizeof(b)), "cuMemAlloc");
  check(allocate(&dsum, sizeof(sum)), "cuMemAlloc");
  check(to_device(da, a, sizeof(a)), "cuMemcpyHtoD");
  check(to_device(db, b, sizeof(b)), "cuMemcpyHtoD");
  parameters[0] = &da;
  parameters[1] = &db;
  parameters[2] = &dsum;
  parameters[3] = &n;
  check(launch(add, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL),
        "cuLaunchKernel");
  check(synchronize(), "cuCtxSynchronize");
  check(to_host(sum, dsum, sizeof(sum)), "cuMemcpyDtoH");
  for (i = 0; i < COUNT; ++i) {
    if (sum[i] != a[i] + b[i]) {
      fprintf(stderr, "element %d is %g, not %g\n", i, sum[i], a[i] + b[i]);
      return 1;
    }
  }
  check(release(da), "cuMemFree");
  check(release(db), "cuMemFree");
  check(release(dsum), "cuMemFree");
  check(unload(module), "cuModuleUnload");
  check(context_destroy(context), "cuCtxDestroy");
  printf("%s: %d sums are right\n", name, COUNT);
  return 0;
}
