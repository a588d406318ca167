// Files that are shortened while they are mapped: reading beyond the new end raises SIGBUS, which is no crash of ours.
#ifndef HM_CLI_SHORTENED_H
#define HM_CLI_SHORTENED_H

// From now on that ends the process with exit code 2 and one line on standard error that names the file.
void hm_watch_for_shortened_files(void);

#endif
