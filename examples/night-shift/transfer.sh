# Adds a line each time that it is called.
sum=$(awk -F, '{ sum += $2 } END { print sum }' ledger.csv)
echo "$sum to $1" >> transfers.txt
echo "{\"transferred\": $sum, \"to\": \"$1\"}"
