# -DPROGRAM=annulus -DFOLDER=folder -DTEMPLATES=file -DSTAMP=file -P this: compiles the kernels that
# the folder lacks. Kernels of other templates are removed first, so that no useless kernel is
# installed.
file(SHA256 ${TEMPLATES} now)
set(before "")
if(EXISTS ${STAMP})
  file(READ ${STAMP} before)
endif()
if(NOT before STREQUAL now)
  file(REMOVE_RECURSE ${FOLDER})
endif()
execute_process(
  COMMAND ${PROGRAM} warm --general --into ${FOLDER} --arch sm_80 --arch sm_90a
    --device sim:sm_80 --device sim:sm_90a
  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE problem)
if(NOT code EQUAL 0)
  # Without the stamp the next build tries again. NVRTC may be installed by then.
  file(REMOVE ${STAMP})
  message(STATUS "not all general kernels were compiled: ${said}${problem}")
  return()
endif()
file(WRITE ${STAMP} ${now})
