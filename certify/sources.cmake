# Each area of certify/ lists its own files.
include(certify/math.cmake OPTIONAL)
include(certify/log.cmake OPTIONAL)
include(certify/check.cmake OPTIONAL)
include(certify/reader.cmake OPTIONAL)
