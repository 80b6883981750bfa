# The call shapes of engines. Each row of docs/engines.md has a test of its name.
annulus_test(engines LABEL device LIBRARIES annulus_test_batches SOURCES engines/engine_call.cc
  engines/flashinfer_test.cc engines/ggml_test.cc engines/onnx_runtime_test.cc
  engines/pytorch_test.cc engines/sglang_test.cc engines/tensorrt_llm_test.cc engines/vllm_test.cc)
