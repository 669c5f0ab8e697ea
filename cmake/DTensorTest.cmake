# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Lets Open MPI run as root, with more ranks than cores, and jobs side by side without being bound to
# the same core. Other MPI libraries ignore it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/mpi_environment.txt DTENSOR_TEST_ENVIRONMENT)
list(APPEND DTENSOR_TEST_ENVIRONMENT GTEST_COLOR=no)

set(DTENSOR_CHECK_OUTPUT_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/CheckOutput.cmake)

find_program(DTensor_TIMEOUT_PROGRAM timeout REQUIRED)
mark_as_advanced(DTensor_TIMEOUT_PROGRAM)

# dtensor_add_mpi_test(NAME <name> TARGET <target> RANKS <n>...
#                      [ARGS <argument>...] [TIMEOUT <seconds>] [LABELS <label>...]
#                      [OUTPUT_REGEX <regex>] [EXPECT_FAILURE])
#
# Adds one test per number of ranks, named <name>_np<n>. Without TIMEOUT it may run for 120 seconds.
# OUTPUT_REGEX: the output must match it as well. EXPECT_FAILURE: the program must fail on its own; a
# timeout is no such failure.
function(dtensor_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "EXPECT_FAILURE" "NAME;TARGET;TIMEOUT;OUTPUT_REGEX"
                        "RANKS;ARGS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_TARGET OR NOT arg_RANKS)
    message(FATAL_ERROR "dtensor_add_mpi_test(${ARGV}): needs NAME, TARGET and RANKS, does not know \
'${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR ctest_timeout "${arg_TIMEOUT} + 15")

  foreach(ranks IN LISTS arg_RANKS)
    set(command
        ${DTensor_TIMEOUT_PROGRAM} -k 5 ${arg_TIMEOUT} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG}
        ${ranks} ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${arg_TARGET}> ${MPIEXEC_POSTFLAGS} ${arg_ARGS})
    if(arg_OUTPUT_REGEX OR arg_EXPECT_FAILURE)
      set(command ${CMAKE_COMMAND} "-DOUTPUT_REGEX=${arg_OUTPUT_REGEX}"
                  -DEXPECT_FAILURE=${arg_EXPECT_FAILURE} -P ${DTENSOR_CHECK_OUTPUT_SCRIPT} --
                  ${command})
    endif()
    # ctest never needs more cores for a test than this, and never leaves one out for want of cores.
    set(processors 1)
    if(ranks GREATER 1)
      set(processors 2)
    endif()
    set(test ${arg_NAME}_np${ranks})
    add_test(NAME ${test} COMMAND ${command})
    set_tests_properties(
      ${test} PROPERTIES ENVIRONMENT "${DTENSOR_TEST_ENVIRONMENT}" LABELS "${arg_LABELS}"
                         PROCESSORS ${processors} TIMEOUT ${ctest_timeout})
  endforeach()
endfunction()
