// Reading .npy files: see npy.h. The header is read by a small parser of the one dictionary that numpy.save writes; what
// else Python would take as a literal is refused.
#include "decode/npy.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_MOST = 1 << 16, WORD_MOST = 24 };
static const uint8_t magic[HM_NPY_MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool hm_npy_begins(const uint8_t *data, size_t size)
{
    return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

// What is left of the header.
struct reader {
    const char *path, *start, *at, *end;
    struct hm_error *err;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

// "path: header, byte 12: expected ..., found ..."
static hm_status expected(struct reader *r, const char *what)
{
    skip_space(r);
    char found[16] = "its end";
    unsigned char c = r->at < r->end ? (unsigned char)*r->at : 0;
    if (r->at < r->end && c > ' ' && c < 0x7f) snprintf(found, sizeof found, "'%c'", c);
    else if (r->at < r->end) snprintf(found, sizeof found, "byte 0x%02x", c);
    return hm_fail(r->err, HM_FORMAT, "%s: header, byte %zu: expected %s, found %s", r->path,
                   (size_t)(r->at - r->start), what, found);
}

static hm_status need(struct reader *r, char c)
{
    char what[] = {'\'', c, '\'', 0};
    return take(r, c) ? HM_OK : expected(r, what);
}

// A string in quotes of either kind, printable and without escapes.
static hm_status read_string(struct reader *r, char word[WORD_MOST])
{
    skip_space(r);
    char quote = r->at < r->end ? *r->at : 0;
    size_t n = 0;
    if (quote != '\'' && quote != '"') return expected(r, "a string");
    const char *p = r->at + 1;
    while (p < r->end && *p != quote && *p >= ' ' && *p < 0x7f && *p != '\\' && n + 1 < WORD_MOST) word[n++] = *p++;
    word[n] = 0;
    if (p == r->end || *p != quote) return expected(r, "a short string");
    r->at = p + 1;
    return HM_OK;
}

static hm_status read_bool(struct reader *r, bool *out)
{
    skip_space(r);
    size_t left = (size_t)(r->end - r->at);
    *out = left >= 4 && memcmp(r->at, "True", 4) == 0;
    if (!*out && (left < 5 || memcmp(r->at, "False", 5) != 0)) return expected(r, "True or False");
    r->at += *out ? 4 : 5;
    return HM_OK;
}

// A size, which Python 2 may have written as a long ("3L").
static hm_status read_size(struct reader *r, size_t *out)
{
    size_t value = 0;
    skip_space(r);
    const char *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (!hm_mul_size(value, 10, &value) || !hm_add_size(value, (size_t)(*r->at - '0'), &value))
            return hm_fail(r->err, HM_FORMAT, "%s: header: expected sizes below 2^64 in \"shape\"", r->path);
    if (r->at == first) return expected(r, "a size");
    if (r->at < r->end && *r->at == 'L') r->at++;
    *out = value;
    return HM_OK;
}

static hm_status read_shape(struct reader *r, struct hm_npy *npy)
{
    hm_status rc = need(r, '(');
    npy->rank = 0;
    while (!rc && !take(r, ')')) {
        if (npy->rank == HM_TENSOR_RANK_MOST)
            return hm_fail(r->err, HM_UNSUPPORTED, "%s: header: expected at most %d dimensions, found more", r->path,
                           HM_TENSOR_RANK_MOST);
        rc = read_size(r, &npy->shape[npy->rank++]);
        if (rc) return rc;
        bool comma = take(r, ',');
        if (!comma) {
            if (npy->rank == 1) return expected(r, "','"); // "(3)" is a number, no tuple
            return need(r, ')');
        }
    }
    return rc;
}

static hm_status read_descr(struct reader *r, struct hm_npy *npy)
{
    char word[WORD_MOST];
    skip_space(r);
    if (r->at < r->end && *r->at == '[')
        return hm_fail(r->err, HM_UNSUPPORTED, "%s: expected an array of numbers, found an array of records", r->path);
    hm_status rc = read_string(r, word);
    if (rc) return rc;
    if (word[0] == '>')
        return hm_fail(r->err, HM_UNSUPPORTED, "%s: expected little-endian numbers, found type '%s'", r->path, word);
    bool digit = strlen(word) == 3 && strchr("1248", word[2]);
    npy->kind = word[0] ? word[1] : 0;
    npy->item = digit ? (size_t)(word[2] - '0') : 0;
    bool ordered = word[0] == '<' || (word[0] == '|' && npy->item == 1);
    bool known = digit && ordered && ((npy->kind == 'f' && npy->item > 1) || npy->kind == 'i' || npy->kind == 'u' ||
                                      (npy->kind == 'b' && npy->item == 1));
    if (!known)
        return hm_fail(r->err, HM_UNSUPPORTED, "%s: expected numbers, such as type '<f4' or '<i8', found type '%s'", r->path,
                       word);
    return HM_OK;
}

static hm_status read_dictionary(struct reader *r, struct hm_npy *npy)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false}, fortran = false;
    char key[WORD_MOST];
    hm_status rc = need(r, '{');
    while (!rc && !take(r, '}')) {
        int which = 0;
        rc = read_string(r, key);
        if (!rc) rc = need(r, ':');
        if (rc) return rc;
        while (which < 3 && strcmp(keys[which], key) != 0) which++;
        if (which == 3 || seen[which])
            return hm_fail(r->err, HM_FORMAT,
                           "%s: header: expected the keys descr, fortran_order and shape once each, found \"%s\"%s",
                           r->path, key, which == 3 ? "" : " twice");
        seen[which] = true;
        rc = which == 0 ? read_descr(r, npy) : which == 1 ? read_bool(r, &fortran) : read_shape(r, npy);
        if (!rc && !take(r, ',')) {
            rc = need(r, '}');
            break;
        }
    }
    for (int i = 0; i < 3 && !rc; i++)
        if (!seen[i]) rc = hm_fail(r->err, HM_FORMAT, "%s: header: expected the key \"%s\", found none", r->path, keys[i]);
    skip_space(r);
    if (!rc && r->at != r->end) rc = expected(r, "nothing after the dictionary");
    if (!rc && fortran)
        rc = hm_fail(r->err, HM_UNSUPPORTED, "%s: expected C order, found Fortran order (save numpy.ascontiguousarray(x))",
                     r->path);
    return rc;
}

static hm_status check_bytes(const char *path, struct hm_npy *npy, struct hm_error *err)
{
    char shape[HM_TENSOR_SHAPE_TEXT];
    size_t need_bytes = npy->item;
    bool empty = false, fits = true;
    hm_shape_text(npy->rank, npy->shape, shape);
    for (size_t i = 0; i < npy->rank; i++) empty = empty || npy->shape[i] == 0;
    for (size_t i = 0; i < npy->rank && fits && !empty; i++) fits = hm_mul_size(need_bytes, npy->shape[i], &need_bytes);
    if (!fits) return hm_fail(err, HM_FORMAT, "%s: expected a shape that fits in memory, found %s", path, shape);
    if (empty) need_bytes = 0;
    if (need_bytes != npy->bytes)
        return hm_fail(err, HM_FORMAT, "%s: expected %zu bytes of data for shape %s of %zu-byte numbers, found %zu", path,
                       need_bytes, shape, npy->item, npy->bytes);
    return HM_OK;
}

static hm_status read_file(const char *path, struct hm_npy *npy, struct hm_error *err)
{
    const uint8_t *data = npy->map.data;
    size_t size = npy->map.size;
    if (!hm_npy_begins(data, size))
        return hm_fail(err, HM_FORMAT, "%s: expected a .npy file, found another kind of file", path);
    if (size < 10) return hm_fail(err, HM_FORMAT, "%s: expected a header, found the end of the file", path);
    unsigned major = data[6];
    if (major < 1 || major > 3)
        return hm_fail(err, HM_UNSUPPORTED, "%s: expected version 1, 2 or 3 of the format, found %u", path, major);
    size_t prefix = major == 1 ? 10 : 12, length = (size_t)data[8] | (size_t)data[9] << 8;
    if (size < prefix) return hm_fail(err, HM_FORMAT, "%s: expected a header, found the end of the file", path);
    if (major > 1) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    size_t most = size - prefix < HEADER_MOST ? size - prefix : HEADER_MOST;
    if (length > most)
        return hm_fail(err, HM_FORMAT, "%s: expected a header of at most %zu bytes, found a length of %zu", path, most,
                       length);
    const char *text = (const char *)data + prefix;
    struct reader r = {.path = path, .start = text, .at = text, .end = text + length, .err = err};
    npy->data = data + prefix + length;
    npy->bytes = size - prefix - length;
    hm_status rc = read_dictionary(&r, npy);
    return rc ? rc : check_bytes(path, npy, err);
}

hm_status hm_npy_open(const char *path, struct hm_npy *out, struct hm_error *err)
{
    *out = (struct hm_npy){0};
    hm_status rc = hm_map_open(path, &out->map, err);
    if (!rc) rc = read_file(path, out, err);
    if (rc) hm_npy_close(out);
    return rc;
}

void hm_npy_close(struct hm_npy *npy)
{
    hm_map_close(&npy->map);
    *npy = (struct hm_npy){0};
}
