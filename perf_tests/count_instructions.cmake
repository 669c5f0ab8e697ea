# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DVALGRIND=... -DPROGRAM=... -DLOOP=add -DLIMIT=3000 -P count_instructions.cmake
#
# Instructions of one more call of the library less those of one more call of the bare kernel.
function(count loop calls result)
  execute_process(
    COMMAND ${VALGRIND} --tool=callgrind --callgrind-out-file=/dev/null ${PROGRAM} --loop ${loop}
            --calls ${calls}
    ERROR_VARIABLE output
    OUTPUT_QUIET
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "Collected : ([0-9]+)")
    message(FATAL_ERROR "no count of ${loop}: ${output}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

foreach(loop ${LOOP} ${LOOP}-bare)
  count(${loop} 1000 few)
  count(${loop} 3000 many)
  math(EXPR ${loop}_each "(${many} - ${few}) / 2000")
endforeach()
math(EXPR above "${${LOOP}_each} - ${${LOOP}-bare_each}")
message("${LOOP}: ${${LOOP}_each} instructions, bare kernel ${${LOOP}-bare_each}, above it ${above}")
if(above GREATER LIMIT)
  message(FATAL_ERROR "more than ${LIMIT} instructions above the bare kernel")
endif()
