// The HTML report: one self-contained page that opens from a file, without network. The parts are in html_*.c, its
// style in report.css, its script in report.js.
#include "reports/html.h"
#include "reports/report.h"

#include <openssl/evp.h>
#include <string.h>

// The one script a browser may run here is ours: it is named by its hash, so a text from a log that got through the
// escaping would still be inert.
static hm_status put_policy(struct hm_output *o, struct hm_error *err)
{
    uint8_t digest[HM_SHA256_BYTES];
    unsigned char base64[48];
    hm_status rc = hm_sha256(hm_report_js, strlen(hm_report_js), digest, err);
    if (rc) return rc;
    EVP_EncodeBlock(base64, digest, sizeof digest);
    hm_putf(o,
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'sha256-%s'\">\n",
            (const char *)base64);
    return HM_OK;
}

// The sections of logs: everything but the findings.
static void put_logs(struct hm_output *o, const struct hm_report *r)
{
    bool audit = hm_report_audit(r);
    hm_html_claims(o, r);
    hm_html_missed(o, r);
    if (!audit) hm_html_text(o, r);
    if (!audit) hm_html_acceptance(o, r);
    if (!audit) hm_html_speculative(o, r);
    hm_html_cost(o, r);
    if (!audit) hm_html_course(o, r);
    hm_html_theory(o, r);
    hm_html_findings(o, r);
    if (!audit) hm_html_closest(o, r);
    hm_html_groups(o, r);
    hm_html_run(o, r);
    hm_html_examples(o, r);
}

static void put_page(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<title>hallmark report: ");
    hm_put_html(o, r->log_count ? r->logs[0].path : r->findings.file[0].path);
    hm_put(o, "</title>\n<style>\n");
    hm_put(o, hm_report_css);
    hm_put(o, "</style>\n</head>\n<body>\n<main>\n");
    if (r->log_count) {
        hm_html_summary(o, r);
        hm_put(o, "</main>\n");
        hm_html_navigation(o, r);
        hm_put(o, "<main>\n");
        put_logs(o, r);
    } else {
        hm_html_findings_alone(o, r);
        hm_html_findings(o, r);
    }
    hm_html_how(o, r);
    hm_put(o, "</main>\n<footer>Made by hallmark from the files");
    hm_put(o, " named above. Nothing on this page was fetched from anywhere.</footer>\n<div class=\"card\" id=\"card\" "
              "role=\"status\" hidden></div>\n");
    hm_html_token_data(o, r);
    hm_put(o, "<script>");
    hm_put(o, hm_report_js);
    hm_put(o, "</script>\n</body>\n</html>\n");
}

hm_status hm_report_write_html(const struct hm_report *r, const char *path, struct hm_error *err)
{
    struct hm_output *o;
    hm_status rc = hm_output_open(path, &o, err);
    if (rc) return rc;
    hm_put(o, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
              "content=\"width=device-width, initial-scale=1\">\n");
    rc = put_policy(o, err);
    if (rc) {
        hm_output_abandon(o);
        return rc;
    }
    put_page(o, r);
    return hm_output_close(o, err);
}
