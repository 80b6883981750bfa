# Embeds text files into the library.
#
#   annulus_embed(OUTPUT variable NAME templates ROOT folder FILES file...)
#
# Generates one .cc that defines annulus::jit::embedded_NAME(); see src/jit/templates.h. The
# text becomes a list of integers because compilers limit the length of a string literal.

set(ANNULUS_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

function(annulus_embed)
  cmake_parse_arguments(EMBED "" "OUTPUT;NAME;ROOT" "FILES" ${ARGN})
  set(output ${PROJECT_BINARY_DIR}/generated/embedded_${EMBED_NAME}.cc)
  list(JOIN EMBED_FILES "|" joined)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAME=${EMBED_NAME} -DROOT=${EMBED_ROOT} "-DFILES=${joined}"
            -P ${ANNULUS_EMBED_SCRIPT}
    DEPENDS ${EMBED_FILES} ${ANNULUS_EMBED_SCRIPT}
    VERBATIM)
  set(${EMBED_OUTPUT} ${output} PARENT_SCOPE)
endfunction()
