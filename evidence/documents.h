// The JSON documents of a mapped file, one after the other: a document, an array of documents, JSON Lines, or a stream of
// server-sent events. Memory does not grow with the file; a document is checked as a whole before it is given.
//
// What a file is, its first byte says: '{' begins documents, '[' an array of them (its elements are given one by one), and
// "data:", "event:", "id:", "retry:" or ':' a stream of events. In a stream each `data:` line holds one document; "[DONE]",
// other lines and carriage returns are passed over. A byte order mark at the start is passed over, UTF-16 refused.
#ifndef HM_EVIDENCE_DOCUMENTS_H
#define HM_EVIDENCE_DOCUMENTS_H

#include "base/file.h"
#include "base/json_text.h"

struct hm_document {
    struct hm_json_text value; // no value: the end of the file
    size_t line;               // where it begins, from 1
};

struct hm_documents {
    const char *path, *text; // borrowed
    size_t size, at;
    size_t released;         // bytes before it were given back
    size_t line, counted;    // the line of byte `counted`
    bool streamed;           // server-sent events
    bool in_array, comma;    // inside an array of documents; an element came before
};

// path and map are borrowed. HM_FORMAT "FILE: expected JSON or server-sent events, found ...".
hm_status hm_documents_open(struct hm_documents *out, const char *path, const struct hm_map *map, struct hm_error *err);

// The next document, at the end none. HM_FORMAT "FILE: line 3: byte 17: expected ...": the line that is at fault, and the byte
// in it from 0.
hm_status hm_documents_next(struct hm_documents *documents, struct hm_document *out, struct hm_error *err);

// HM_FORMAT "FILE: line 3: PLACE: expected WHAT, found an array": a value that is not what its reader needs.
hm_status hm_document_expected(const struct hm_documents *documents, const struct hm_document *document, const char *place,
                               const char *what, struct hm_json_text found, struct hm_error *err);

#endif
