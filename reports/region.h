// Where a step stands: what its log says of the draft's distance, of the level at which coverage could fail, and of the gap
// of its row, for the pictures of acceptance regions (docs/theory.md §2, §3). Kept are the steps nearest to the line.
#ifndef HM_REPORTS_REGION_H
#define HM_REPORTS_REGION_H

#include "bounds/ival.h"
#include "certify/log_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HM_REGION_STEPS = 3 }; // kept on each side of the line, for each claim

struct hm_region {
    size_t log, line;              // where it stands
    int64_t sequence, t, index;    // index: of an audit's row, else -1
    char text[64];                 // of its token, maybe cut
    int64_t k, m;
    bool certified;                // by KLf
    double nearness;               // |ln(KLf / KLf*)|
    struct hm_ival distance[3];    // KL(p||q), KL(q||p), TV of the draft
    struct hm_ival level[3];       // KLf*, KLr*, TV*
    struct hm_ival water[2];       // the levels c and ln g; the witness holds them on its tied set
    struct hm_ival edge[2];        // p_(k), p_(k+1)
    struct hm_ival gap;            // p_(k) - p_(k+1)
};

// Not certified and certified by KLf, nearest first.
struct hm_regions {
    struct hm_region near[2][HM_REGION_STEPS];
    size_t count[2];
};

// Takes the step if it is decided by KLf, has levels, both edges and a draft row, and lies nearer than one that is kept.
// certify_temperature: as the header writes it.
void hm_regions_add(struct hm_regions *regions, const struct hm_record_step *step, const struct hm_record_claim *claim,
                    const char *certify_temperature, size_t log, size_t line);

// The margin-only bound on KL(p||q) for a gap y in [0, 1/k] (docs/theory.md §3), k, m >= 1.
struct hm_ival hm_region_margin(int64_t k, int64_t m, struct hm_ival gap);

// Distributions on three tokens: the first, the second, all others as one. p may be known as an enclosure only; the third
// share is what the two leave.
struct hm_three {
    struct hm_ival share[3]; // a third of exactly 0: there are two tokens only
};
struct hm_three hm_three_of(struct hm_ival first, struct hm_ival second); // third: at least 0

// KL(p||q), KL(q||p), TV(p,q) by `kind` 0, 1, 2, of q = (q1, q2, the rest). Ends are infinite where q lacks what p has.
struct hm_ival hm_three_distance(const struct hm_three *p, double q1, double q2, int kind);

// How far one can go from the point (q1, q2) = `from` into the direction (d1, d2), as a multiple of it, before the distance
// to p may reach `level` (HM_INSIDE) or surely has (HM_OUTSIDE), or q leaves the triangle. The distance is convex, and `from`
// is taken to be p: along a ray it only grows.
enum hm_side { HM_INSIDE, HM_OUTSIDE };
double hm_three_reach(const struct hm_three *p, const double from[2], double d1, double d2, int kind, struct hm_ival level,
                      enum hm_side side);

#endif
