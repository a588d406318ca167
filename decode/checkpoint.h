// The weight files of a checkpoint folder: one model.safetensors, or the shards named by model.safetensors.index.json.
//
// When both are there, model.safetensors is taken. With an index, a tensor is looked for in the shard the index names,
// and must be there; tensors the index does not name are not seen. Shard names may not leave the folder.
#ifndef HM_DECODE_CHECKPOINT_H
#define HM_DECODE_CHECKPOINT_H

#include "base/error.h"
#include "decode/safetensors.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_checkpoint;

hm_status hm_checkpoint_open(const char *dir, struct hm_checkpoint **out, struct hm_error *err);
void hm_checkpoint_close(struct hm_checkpoint *checkpoint); // NULL is allowed

size_t hm_checkpoint_files(const struct hm_checkpoint *checkpoint);                                // weight files
const struct hm_safetensors *hm_checkpoint_file(const struct hm_checkpoint *checkpoint, size_t i); // by name

// The tensor of a name, or NULL; *path (may be NULL) is then the file it lies in.
const struct hm_tensor *hm_checkpoint_find(const struct hm_checkpoint *checkpoint, const char *name, const char **path);

// The tensor of a name, which must exist with exactly this shape and as F32, F16 or BF16. HM_SHAPE, HM_UNSUPPORTED.
hm_status hm_checkpoint_need(const struct hm_checkpoint *checkpoint, const char *name, size_t rank, const size_t *shape,
                             const struct hm_tensor **tensor, enum hm_dtype *dtype, struct hm_error *err);

// SHA-256, in hexadecimal, of the bytes of the weight files one after the other in the order of their names (bytewise):
// what `cat *.safetensors | sha256sum` prints when the folder holds no others.
//
// Hashes are kept in $HALLMARK_CACHE, or $XDG_CACHE_HOME/hallmark, or ~/.cache/hallmark, one small file each, found
// again by path, size, inode and times of change of every weight file. HALLMARK_CACHE=off keeps none. A cache that
// cannot be read or written is no error: the hash is then computed.
hm_status hm_checkpoint_hash(const struct hm_checkpoint *checkpoint, char hex[65], struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
