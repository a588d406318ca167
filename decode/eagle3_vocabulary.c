// The draft vocabulary of an EAGLE-3 head. "d2t" maps draft ids to the target's, either by offsets (target = draft id +
// d2t[draft id], as EAGLE writes it) or by absolute ids (as conversions do); "t2d" marks the target's ids inside it.
//
// Both readings must give strictly increasing ids of the target, and with t2d exactly the marked ones, which at most
// one of them can. Without t2d strictly increasing values are ids: offsets repeat wherever two neighbours are both
// drafted.
#include "decode/eagle3.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

struct vocabulary {
    const char *path, *name; // of d2t
    const struct hm_tensor *d2t;
    bool wide;           // its values are int64, otherwise int32
    const uint8_t *mark; // t2d, one byte an id of the target, or NULL
    size_t draft, target;
};

static int64_t value(const struct vocabulary *v, size_t j)
{
    int64_t wide;
    int32_t narrow;
    if (v->wide)
        memcpy(&wide, v->d2t->data + j * sizeof wide, sizeof wide);
    else
        memcpy(&narrow, v->d2t->data + j * sizeof narrow, sizeof narrow), wide = narrow;
    return wide;
}

// The target's id of draft id j, or -1 when it lies outside.
static int64_t target_of(const struct vocabulary *v, size_t j, bool offsets)
{
    int64_t raw = value(v, j), base = offsets ? (int64_t)j : 0;
    return raw < -base || raw >= (int64_t)v->target - base ? -1 : base + raw;
}

// Fails at the first entry that is no id of the target, not above the one before, or not marked.
static hm_status check(const struct vocabulary *v, bool offsets, struct hm_error *err)
{
    const char *how = offsets ? "offset" : "id";
    int64_t before = -1;
    for (size_t j = 0; j < v->draft; j++) {
        int64_t id = target_of(v, j, offsets);
        if (id < 0)
            return hm_fail(err, HM_RANGE,
                           "%s: tensor \"%s\": entry %zu: expected the %s of a token below %zu, found %lld", v->path,
                           v->name, j, how, v->target, (long long)value(v, j));
        if (id <= before)
            return hm_fail(err, HM_RANGE,
                           "%s: tensor \"%s\": entry %zu: expected the %s of a token above %lld, found %lld", v->path,
                           v->name, j, how, (long long)before, (long long)value(v, j));
        if (v->mark && !v->mark[id])
            return hm_fail(err, HM_RANGE,
                           "%s: tensor \"%s\": entry %zu: expected a token that \"t2d\" marks, found %lld", v->path,
                           v->name, j, (long long)id);
        before = id;
    }
    return HM_OK;
}

static bool rising(const struct vocabulary *v)
{
    for (size_t j = 1; j < v->draft; j++)
        if (value(v, j) <= value(v, j - 1)) return false;
    return true;
}

static hm_status read_d2t(struct vocabulary *v, struct hm_error *err)
{
    char expected[HM_TENSOR_SHAPE_TEXT], found[HM_TENSOR_SHAPE_TEXT];
    const struct hm_tensor *t = v->d2t;
    hm_shape_text(1, &v->draft, expected);
    hm_shape_text(t->rank, t->shape, found);
    if (t->rank != 1 || t->shape[0] != v->draft)
        return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected %s, the draft vocabulary, found %s", v->path,
                       v->name, expected, found);
    v->wide = strcmp(t->type, "I64") == 0;
    if (!v->wide && strcmp(t->type, "I32") != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected type I64 or I32, found %s", v->path, v->name,
                       t->type);
    return HM_OK;
}

static hm_status read_t2d(struct vocabulary *v, const char *name, const char *path, const struct hm_tensor *t,
                          struct hm_error *err)
{
    char expected[HM_TENSOR_SHAPE_TEXT], found[HM_TENSOR_SHAPE_TEXT];
    hm_shape_text(1, &v->target, expected);
    hm_shape_text(t->rank, t->shape, found);
    if (t->rank != 1 || t->shape[0] != v->target)
        return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected %s, the target's vocabulary, found %s", path, name,
                       expected, found);
    if (strcmp(t->type, "BOOL") != 0 && strcmp(t->type, "U8") != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: tensor \"%s\": expected type BOOL, found %s", path, name, t->type);
    size_t marked = 0;
    for (size_t i = 0; i < v->target; i++) marked += t->data[i] != 0;
    if (marked != v->draft)
        return hm_fail(err, HM_SHAPE, "%s: tensor \"%s\": expected %zu tokens marked, the draft vocabulary, found %zu",
                       path, name, v->draft, marked);
    v->mark = t->data;
    return HM_OK;
}

void hm_eagle3_name(const struct hm_checkpoint *checkpoint, const char *name, char found[HM_TENSOR_NAME_MOST])
{
    snprintf(found, HM_TENSOR_NAME_MOST, "model.%s", name);
    if (hm_checkpoint_find(checkpoint, name, NULL) || !hm_checkpoint_find(checkpoint, found, NULL))
        snprintf(found, HM_TENSOR_NAME_MOST, "%s", name);
}

hm_status hm_eagle3_vocabulary(const struct hm_checkpoint *checkpoint, size_t draft_vocab, size_t vocab, int32_t **ids,
                               struct hm_error *err)
{
    *ids = NULL;
    char d2t[HM_TENSOR_NAME_MOST], t2d[HM_TENSOR_NAME_MOST];
    const char *path = hm_safetensors_path(hm_checkpoint_file(checkpoint, 0));
    struct vocabulary v = {.name = d2t, .draft = draft_vocab, .target = vocab};
    hm_eagle3_name(checkpoint, "d2t", d2t);
    v.d2t = hm_checkpoint_find(checkpoint, d2t, &v.path);
    if (!v.d2t) hm_eagle3_name(checkpoint, "draft_id_to_target_id", d2t);
    if (!v.d2t) v.d2t = hm_checkpoint_find(checkpoint, d2t, &v.path);
    if (!v.d2t && draft_vocab == vocab) return HM_OK;
    if (!v.d2t)
        return hm_fail(
            err, HM_SHAPE,
            "%s: tensor \"d2t\": expected [%zu], the tokens of %zu that the draft vocabulary holds, found nothing",
            path, draft_vocab, vocab);
    hm_eagle3_name(checkpoint, "t2d", t2d);
    const struct hm_tensor *marks = hm_checkpoint_find(checkpoint, t2d, &path);
    hm_status rc = read_d2t(&v, err);
    if (!rc && marks) rc = read_t2d(&v, t2d, path, marks, err);
    if (rc) return rc;
    bool offsets = !rising(&v) || (v.mark && check(&v, false, NULL) != HM_OK && check(&v, true, NULL) == HM_OK);
    rc = check(&v, offsets, err);
    if (rc) return rc;
    *ids = hm_calloc(draft_vocab, sizeof **ids);
    if (!*ids) return hm_fail(err, HM_MEMORY, "%s: out of memory for a draft vocabulary of %zu", path, draft_vocab);
    for (size_t j = 0; j < draft_vocab; j++) (*ids)[j] = (int32_t)target_of(&v, j, offsets);
    return HM_OK;
}
