# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -P build_and_run.cmake <source> <build> <cmake option>... -- <command>...
#
# Configures and builds the project, then runs the command.
cmake_minimum_required(VERSION 3.22)

set(source ${CMAKE_ARGV3})
set(build ${CMAKE_ARGV4})
set(options)
set(command)
set(list options)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 5 ${last})
  if("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(list command)
  else()
    list(APPEND ${list} "${CMAKE_ARGV${i}}")
  endif()
endforeach()

function(run step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status STREQUAL "0")
    message(FATAL_ERROR "Could not ${step} ${source}: ${status}")
  endif()
endfunction()

run(configure ${CMAKE_COMMAND} -S ${source} -B ${build} ${options})
run(build ${CMAKE_COMMAND} --build ${build} --parallel 2)
run(run ${command})
