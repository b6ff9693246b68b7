// What JSON of a request must look like; `at` says where it stands.

import { badRequest } from "./refusal.mjs";

export function object(value, at) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
        throw badRequest(at, "must be an object");
    }
    return value;
}

export function list(value, at) {
    if (!Array.isArray(value)) throw badRequest(at, "must be a list");
    return value;
}

export function string(value, at) {
    if (typeof value !== "string") throw badRequest(at, "must be a string");
    return value;
}

export function flag(value, at) {
    if (typeof value !== "boolean") throw badRequest(at, "must be true or false");
    return value;
}

export function count(value, at) {
    if (!Number.isInteger(value) || value < 1)
        throw badRequest(at, "must be an integer of 1 or more");
    return value;
}

export function oneOf(value, allowed, at) {
    if (!allowed.includes(value)) throw badRequest(at, `must be one of ${allowed.join(", ")}`);
    return value;
}

/** Refuses keys that nobody looks at: to ignore what a client asked for would be a lie. */
export function onlyKeys(value, known, at) {
    const unknown = Object.keys(value).find((key) => !known.includes(key));
    if (unknown === undefined) return;
    throw badRequest(at === "" ? unknown : `${at}.${unknown}`, "is not supported by this server");
}

/** A field that may be absent or null. */
export function optional(value, check, at, otherwise) {
    return value === undefined || value === null ? otherwise : check(value, at);
}
