// Integers between two bounds, as a grammar of their digits.

/** Larger ones are no exact numbers in JSON as most programs read it. */
const LARGEST = 10 ** 15 - 1;

/** The rule for the integers that a schema's bounds allow; undefined where there are none. */
export function integerRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
    const least = Math.max(
        -LARGEST,
        Math.ceil(minimum ?? -LARGEST),
        Math.floor(exclusiveMinimum ?? -Infinity) + 1,
    );
    const most = Math.min(
        LARGEST,
        Math.floor(maximum ?? LARGEST),
        Math.ceil(exclusiveMaximum ?? Infinity) - 1,
    );
    if (!(least <= most)) return undefined;
    const parts = [];
    if (least < 0) parts.push(`"-" ${digits(Math.max(1, -most), -least)}`);
    if (most >= 0) parts.push(digits(Math.max(0, least), most));
    return `(${parts.join(" | ")})`;
}

/** The numbers from `least` to `most`, neither below 0, without leading zeros. */
function digits(least, most) {
    const parts = [];
    for (let length = String(least).length; length <= String(most).length; length += 1) {
        const low = Math.max(least, length === 1 ? 0 : 10 ** (length - 1));
        const high = Math.min(most, 10 ** length - 1);
        parts.push(sameLength(String(low), String(high)));
    }
    return `(${parts.join(" | ")})`;
}

/** The texts of digits from `low` to `high`, all as long as these two. */
function sameLength(low, high) {
    if (low === "") return "";
    if (/^0*$/.test(low) && /^9*$/.test(high)) return `[0-9]{${low.length}}`;
    const [first, last] = [Number(low[0]), Number(high[0])];
    const [lowRest, highRest] = [low.slice(1), high.slice(1)];
    if (first === last) return `"${first}" ${sameLength(lowRest, highRest)}`;
    const [zeros, nines] = ["0".repeat(lowRest.length), "9".repeat(lowRest.length)];
    const parts = [
        `"${first}" ${sameLength(lowRest, nines)}`,
        `"${last}" ${sameLength(zeros, highRest)}`,
    ];
    if (last - first > 1) parts.push(`[${first + 1}-${last - 1}] ${sameLength(zeros, nines)}`);
    return `(${parts.join(" | ")})`;
}
