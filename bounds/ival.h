// Enclosures: the only form in which a real number leaves bounds/ and certify/.
#ifndef HM_BOUNDS_IVAL_H
#define HM_BOUNDS_IVAL_H

#ifdef __cplusplus
extern "C" {
#endif

// lo <= value <= hi. Ends may be infinite; never NaN. An unknown real number is the whole line.
struct hm_ival {
    double lo, hi;
};

// Answers to an exact question (docs/theory.md §8). UNDECIDED is never counted as either of the others.
enum hm_verdict { HM_NO, HM_YES, HM_UNDECIDED };

#ifdef __cplusplus
}
#endif

#endif
