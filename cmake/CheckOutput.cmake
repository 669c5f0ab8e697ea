# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DOUTPUT_REGEX=<regex> -DEXPECT_FAILURE=<bool> -P CheckOutput.cmake -- <command>...
#
# Runs the command and checks its exit status and its output, of which both must be right.
cmake_minimum_required(VERSION 3.22)

set(command)
set(separator_seen FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(separator_seen)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(separator_seen TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
message("${output}")

if(EXPECT_FAILURE)
  # 124 and 137 are what timeout(1) exits with; text stands for a signal.
  if(NOT status MATCHES "^[0-9]+$" OR status MATCHES "^(0|124|137)$")
    message(FATAL_ERROR "Expected the command to fail, but its exit status is ${status}")
  endif()
elseif(NOT status STREQUAL "0")
  message(FATAL_ERROR "The exit status is ${status}")
endif()

if(NOT output MATCHES "${OUTPUT_REGEX}")
  message(FATAL_ERROR "The output does not match: ${OUTPUT_REGEX}")
endif()
