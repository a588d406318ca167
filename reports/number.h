// Numbers as a report prints them: decimal, in any locale, and rounded in the direction that keeps a bound a bound.
#ifndef HM_REPORTS_NUMBER_H
#define HM_REPORTS_NUMBER_H

#include <stdint.h>

enum { HM_NUMBER_SIZE = 56 };

// A formatted number is returned by value so that several fit one call: hm_number_down(x, 4).text
struct hm_number {
    char text[HM_NUMBER_SIZE];
};

// x with the given number of significant digits, toward -inf, toward +inf, to nearest: "0.02314", "1.2e-7", "inf".
struct hm_number hm_number_down(double x, int digits);
struct hm_number hm_number_up(double x, int digits);
struct hm_number hm_number_near(double x, int digits);

// numerator/denominator with `decimals` digits after the point, to nearest; "n/a" for a denominator of 0.
struct hm_number hm_number_ratio(uint64_t numerator, uint64_t denominator, int decimals);

// "76.6%"; 100.0% and 0.0% are printed only for all and for none. "n/a" for a denominator of 0.
struct hm_number hm_number_percent(uint64_t numerator, uint64_t denominator);

// The same, or "all vacuous" where nothing but vacuous ones stands below the line: a share would say nothing there.
struct hm_number hm_number_share(uint64_t numerator, uint64_t denominator, uint64_t vacuous);

// 12345 as "12,345", and with a noun of at most 20 letters: "1 sequence", "2 sequences".
struct hm_number hm_number_count(uint64_t count);
struct hm_number hm_number_of(uint64_t count, const char *noun);

// As a JSON value: all digits of a double, rounded down or up; infinities as strings.
struct hm_number hm_number_json_down(double x);
struct hm_number hm_number_json_up(double x);

#endif
