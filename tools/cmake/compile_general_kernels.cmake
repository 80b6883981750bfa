# -DPROGRAM=annulus -DFOLDER=folder -DTEMPLATES=file -DSTAMP=file -P this: compiles what the folder
# lacks. Kernels of other templates are removed first, so that none is installed that serves nobody.
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
  # Without the stamp the next build tries again, perhaps with an NVRTC.
  file(REMOVE ${STAMP})
  message(STATUS "not all general kernels were compiled: ${said}${problem}")
  return()
endif()
file(WRITE ${STAMP} ${now})
