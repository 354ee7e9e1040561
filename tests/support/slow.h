// How much longer a test may take in a build that is slow on purpose.
#ifndef TESTS_SLOW_H
#define TESTS_SLOW_H

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESTS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTS_SANITIZED 1
#endif

#if defined(TESTS_SANITIZED) || !defined(__OPTIMIZE__)
enum { SLACK = 20 };
#else
enum { SLACK = 1 };
#endif

#endif
