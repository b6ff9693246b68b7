# Writes the account's line once, however often it is called. 3 euro more with each account.
ledger=ledger.csv
touch "$ledger"
grep -q "^$1," "$ledger" || echo "$1,$((100 + 3 * $1))" >> "$ledger"
echo "{\"closed\": $1, \"next\": $(($1 + 1))}"
