// The matrix products of cuBLAS that ggml's CUDA backend calls, as a kernel with one thread for
// each element. NVIDIA's library is machine code, which simulated devices cannot run. Sums are in
// fp32, in ascending order of k.

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

// The matrices of a batch, which are consecutive or given by pointers.
template <typename Pointer>
struct Operand {
  Pointer first;
  const Pointer* each;
  long long stride, ld;
  cudaDataType type;
  bool transposed;

  __device__ Pointer matrix(int index) const { return each != nullptr ? each[index] : first; }
  __device__ long long place(int index, long long row, long long column) const {
    const long long start = each != nullptr ? 0 : index * stride;
    return start + (transposed ? column + row * ld : row + column * ld);
  }
};

__device__ float load(const void* from, long long at, cudaDataType type) {
  if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(from)[at]);
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
  return static_cast<const float*>(from)[at];
}

__device__ void store(void* to, long long at, cudaDataType type, float value) {
  if (type == CUDA_R_16F) {
    static_cast<__half*>(to)[at] = __float2half(value);
  } else if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16(value);
  } else {
    static_cast<float*>(to)[at] = value;
  }
}

__global__ void multiply(int m, int n, int k, float alpha, Operand<const void*> a,
                         Operand<const void*> b, float beta, Operand<void*> c) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y;
  const int index = blockIdx.z;
  if (row >= m) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += load(a.matrix(index), a.place(index, row, i), a.type) *
           load(b.matrix(index), b.place(index, i, column), b.type);
  }
  const long long at = c.place(index, row, column);
  sum *= alpha;
  if (beta != 0) sum += beta * load(c.matrix(index), at, c.type);
  store(c.matrix(index), at, c.type, sum);
}

float scale(const void* value, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_16F ? __half2float(*static_cast<const __half*>(value))
                                       : *static_cast<const float*>(value);
}

bool known(cudaDataType type) {
  return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F;
}

cublasStatus_t product(cublasHandle_t handle, int m, int n, int k, float alpha,
                       Operand<const void*> a, Operand<const void*> b, float beta, Operand<void*> c,
                       int batch) {
  if (!known(a.type) || !known(b.type) || !known(c.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const dim3 grid((m + 63) / 64, n, batch);
  multiply<<<grid, 64, 0, handle->stream>>>(m, n, k, alpha, a, b, beta, c);
  return cudaGetLastError() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <typename Pointer>
Operand<Pointer> strided(Pointer first, cudaDataType type, long long ld, long long stride,
                         cublasOperation_t how = CUBLAS_OP_N) {
  return {first, nullptr, stride, ld, type, how != CUBLAS_OP_N};
}

template <typename Pointer>
Operand<Pointer> listed(const Pointer* each, cudaDataType type, long long ld,
                        cublasOperation_t how = CUBLAS_OP_N) {
  return {nullptr, each, 0, ld, type, how != CUBLAS_OP_N};
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "refused by the stand-in for cuBLAS";
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  return product(handle, m, n, k, scale(alpha, compute), strided(a, type_a, lda, 0, of_a),
                 strided(b, type_b, ldb, 0, of_b), scale(beta, compute), strided(c, type_c, ldc, 0),
                 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a,
                                          cublasOperation_t of_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return product(handle, m, n, k, scale(alpha, compute), strided(a, type_a, lda, stride_a, of_a),
                 strided(b, type_b, ldb, stride_b, of_b), scale(beta, compute),
                 strided(c, type_c, ldc, stride_c), batch);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t of_a,
                                   cublasOperation_t of_b, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb,
                                   const void* beta, void* const c[], cudaDataType type_c, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return product(handle, m, n, k, scale(alpha, compute), listed(a, type_a, lda, of_a),
                 listed(b, type_b, ldb, of_b), scale(beta, compute), listed(c, type_c, ldc), batch);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  return cublasGemmEx(handle, of_a, of_b, m, n, k, alpha, a, CUDA_R_32F, lda, b, CUDA_R_32F, ldb,
                      beta, c, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                         cublasOperation_t of_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch) {
  return cublasGemmStridedBatchedEx(handle, of_a, of_b, m, n, k, alpha, a, CUDA_R_32F, lda,
                                    stride_a, b, CUDA_R_32F, ldb, stride_b, beta, c, CUDA_R_32F,
                                    ldc, stride_c, batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                  cublasOperation_t of_b, int m, int n, int k, const float* alpha,
                                  const float* const a[], int lda, const float* const b[], int ldb,
                                  const float* beta, float* const c[], int ldc, int batch) {
  const auto untyped = [](const float* const* each) {
    return reinterpret_cast<const void* const*>(each);
  };
  return cublasGemmBatchedEx(handle, of_a, of_b, m, n, k, alpha, untyped(a), CUDA_R_32F, lda,
                             untyped(b), CUDA_R_32F, ldb, beta, reinterpret_cast<void* const*>(c),
                             CUDA_R_32F, ldc, batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// Only SOLVE_TRI of large matrices uses it.
cublasStatus_t cublasStrsmBatched(cublasHandle_t, cublasSideMode_t, cublasFillMode_t,
                                  cublasOperation_t, cublasDiagType_t, int, int, const float*,
                                  const float* const[], int, float* const[], int, int) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
