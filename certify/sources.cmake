# Each area of certify/ lists its own files.
include(certify/math.cmake)
include(certify/log.cmake)
include(certify/check.cmake)
include(certify/reader.cmake)
