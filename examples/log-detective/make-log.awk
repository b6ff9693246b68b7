# Writes the log of a nightly job, line after line, until there are so many megabytes: the same bytes for
# the same size. Most of it is what such logs are full of. What went wrong began long before it showed.
#
#   awk -v megabytes=200 -f make-log.awk

# Numbers from 0 to n - 1, of a generator of its own: awk's differs from one awk to the next.
function pick(n) {
    state = (state * 16807) % 2147483647
    return state % n
}

function say(level, service, text) {
    second = int(elapsed / 1000)
    line = sprintf("2026-03-14T%02d:%02d:%02d.%03dZ %-5s %-9s %s", 1 + int(second / 3600), \
                   int(second / 60) % 60, second % 60, elapsed % 1000, level, service, text)
    print line
    bytes += length(line) + 1
    lines++
    elapsed += pass
}

function noise(   what) {
    what = pick(1000)
    id = sprintf("%06x", pick(16777216))
    if (what < 420)
        say("DEBUG", "worker-" pick(8), "row " pick(9000000) " checked: total " pick(90000) "." pick(90) + 10 " EUR trace=" id)
    else if (what < 700)
        say("INFO", "worker-" pick(8), "invoice " 700000 + pick(90000) " written in " 2 + pick(40) " ms trace=" id)
    else if (what < 900)
        say("DEBUG", "ledger", "SELECT balance FROM account WHERE id = " pick(500000) " took " 1 + pick(9) " ms trace=" id)
    else if (what < 985)
        say("INFO", "api", "GET /v2/rates/EUR 200 in " 3 + pick(30) " ms trace=" id)
    else if (what < 996)
        say("WARN", "api", "GET /v2/rates/CHF 429, again in " 1 + pick(5) " s trace=" id)
    else if (what < 999)
        say("ERROR", "mailer", "receipt " pick(90000) " not sent: mailbox unavailable (not part of the job) trace=" id)
    else
        say("ERROR", "worker-" pick(8), "row " pick(9000000) " refused: currency XTS is none; put aside trace=" id)
}

BEGIN {
    state = 20260314
    size = megabytes * 1000000
    pass = 10800000 / (size / 88)            # three hours, whatever the size
    say("INFO", "job", "nightly-billing started: 9000000 rows, 8 workers, revision 4c1f9ab")
    say("INFO", "config", "loaded /etc/billing/ledger.toml: pool.max_connections=64 pool.wait=30s (revision 4710)")
    while (bytes < size * 0.31) noise()
    say("INFO", "config", "reloaded /etc/billing/ledger.toml: pool.max_connections=2 pool.wait=30s (revision 4711, by deploy-bot)")
    while (bytes < size * 0.62) noise()
    while (bytes < size * 0.97) {
        if (pick(400) == 0)
            say("WARN", "ledger", "pool `ledger`: " 3 + pick(60) " calls wait for one of 2 connections")
        noise()
    }
    say("ERROR", "ledger", "pool `ledger`: no connection within 30 s, 61 calls wait trace=batch-7731")
    say("ERROR", "worker-5", "step settle-invoices: could not read account 221904: pool timed out trace=batch-7731")
    for (i = 0; i < 40; i++) noise()
    say("ERROR", "job", "step settle-invoices failed after 3 attempts trace=batch-7731")
    while (bytes < size) noise()
    say("FATAL", "job", "nightly-billing failed: step settle-invoices, see trace=batch-7731")
    say("INFO", "job", "exit code 1")
}
