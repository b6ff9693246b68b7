// JSON Schema as a grammar in GBNF, llama.cpp's notation: what is written under it fits the schema.
//
// The grammar is narrower than the schema where that keeps it simple. It writes JSON on one line, no
// properties that are not declared, and texts, lists and numbers of a bounded length, so that every
// answer ends. A schema that it could not hold is refused.

import { integerRange } from "./ranges.mjs";

/** In characters and items, where the schema allows more; never below what it demands. */
const LONGEST_TEXT = 100;
const LONGEST_LIST = 8;

/** llama.cpp refuses grammars that repeat something much more often. */
const MOST_REPETITIONS = 1000;

const ANNOTATIONS = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];
const BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
const KEYWORDS = new Map([
    ["object", ["properties", "required", "additionalProperties"]],
    ["array", ["items", "minItems", "maxItems"]],
    ["string", ["minLength", "maxLength"]],
    ["integer", BOUNDS],
    ["number", BOUNDS],
    ["boolean", []],
    ["null", []],
]);

const BASIC_RULES = [
    ["char", String.raw`[^"\\\x7F\x00-\x1F] | "\\" ["\\/bfnrt]`],
    ["integer", '"-"? ("0" | [1-9] [0-9]{0,14})'],
    ["number", 'integer ("." [0-9]{1,9})?'],
    ["boolean", '"true" | "false"'],
    ["null", '"null"'],
];

/** A schema that no grammar is made of, and where in it the reason stands. */
export class Unsupported extends Error {}

/** Rules by name; several schemas share them. */
export class Grammar {
    #rules = new Map(BASIC_RULES);

    /** Adds a schema; the name of its rule. */
    add(schema) {
        return new SchemaWriter(this.#rules, schema).write();
    }

    /** The text of the grammar, where `root` is what it allows. */
    text(root) {
        const rules = [["root", root], ...this.#rules];
        return rules.map(([name, rule]) => `${name} ::= ${rule}\n`).join("");
    }
}

class SchemaWriter {
    #rules;
    #document;
    #definitions = new Map();

    constructor(rules, document) {
        this.#rules = rules;
        this.#document = document;
    }

    write() {
        return this.#name(this.#value(this.#document, ""));
    }

    #name(rule) {
        const name = `rule${this.#rules.size}`;
        this.#rules.set(name, rule);
        return name;
    }

    #value(schema, path) {
        if (schema === true) return this.#value({}, path);
        expect(isType(schema, "object"), path, "is no schema that allows anything");
        if ("$ref" in schema) return this.#reference(schema, path);
        if ("anyOf" in schema) return this.#alternatives(schema, path);
        if ("const" in schema) return constants(schema, "const", [schema.const], path);
        if ("enum" in schema) return constants(schema, "enum", schema.enum, path);
        const types = [schema.type ?? likelyTypes(schema)].flat();
        const unknown = types.find((type) => !KEYWORDS.has(type));
        expect(unknown === undefined, path, `"${unknown}" is no type`);
        onlyKeywords(schema, ["type", ...types.flatMap((type) => KEYWORDS.get(type))], path);
        return either(
            types.map((type) => this.#ofType(type, schema, path)),
            path,
        );
    }

    #ofType(type, schema, path) {
        if (type === "object") return this.#object(schema, path);
        if (type === "array") return this.#array(schema, path);
        if (type === "string") return text(schema, path);
        return BOUNDS.some((key) => key in schema) ? range(schema, path) : type;
    }

    #reference(schema, path) {
        onlyKeywords(schema, ["$ref"], path);
        const name = /^#\/\$defs\/([^/~%]+)$/.exec(schema.$ref)?.[1];
        const definitions = this.#document.$defs ?? {};
        expect(
            Object.hasOwn(definitions, name ?? ""),
            path,
            '"$ref" is not #/$defs/NAME of this schema',
        );
        if (!this.#definitions.has(name)) {
            // The rule has its name before it is written, because it may refer to itself.
            const rule = this.#name("");
            this.#definitions.set(name, rule);
            this.#rules.set(rule, this.#value(definitions[name], `/$defs/${name}`));
        }
        return this.#definitions.get(name);
    }

    #alternatives(schema, path) {
        onlyKeywords(schema, ["anyOf"], path);
        expect(Array.isArray(schema.anyOf), path, '"anyOf" is no list');
        return either(
            schema.anyOf.map((one, index) => this.#value(one, `${path}/anyOf/${index}`)),
            path,
        );
    }

    #object({ properties = {}, required = [] }, path) {
        expect(isType(properties, "object"), path, '"properties" is no object');
        expect(Array.isArray(required), path, '"required" is no list');
        const undeclared = required.find((key) => !Object.hasOwn(properties, key));
        expect(undeclared === undefined, path, `"${undeclared}" is required and not declared`);
        const member = (key) => {
            const value = this.#value(properties[key], `${path}/properties/${key}`);
            return this.#name(`${literal(`${JSON.stringify(key)}: `)} ${value}`);
        };
        const optional = Object.keys(properties).filter((key) => !required.includes(key));
        return members(required.map(member), optional.map(member));
    }

    #array(schema, path) {
        const { least, most } = lengths(schema, "Items", LONGEST_LIST, path);
        if (most === 0) return literal("[]");
        const item = this.#name(this.#value(schema.items ?? true, `${path}/items`));
        const items = `${item} (${literal(", ")} ${item}){${Math.max(least - 1, 0)},${most - 1}}`;
        return `${literal("[")} ${least === 0 ? `(${items})?` : items} ${literal("]")}`;
    }
}

function constants(schema, keyword, values, path) {
    onlyKeywords(schema, [keyword, "type"], path);
    expect(Array.isArray(values), path, `"${keyword}" is no list`);
    const types = [schema.type ?? []].flat();
    const fitting = values.filter(
        (value) => types.length === 0 || types.some((type) => isType(value, type)),
    );
    return either(
        fitting.map((value) => literal(JSON.stringify(value))),
        path,
    );
}

function text(schema, path) {
    const { least, most } = lengths(schema, "Length", LONGEST_TEXT, path);
    return `${literal('"')} char{${least},${most}} ${literal('"')}`;
}

/** A number within bounds is written as an integer, which is a number too. */
function range(schema, path) {
    const rule = integerRange(schema);
    expect(rule !== undefined, path, "has no integer within its bounds");
    return rule;
}

function lengths(schema, what, longest, path) {
    const least = schema[`min${what}`] ?? 0;
    const most = Math.min(schema[`max${what}`] ?? Infinity, Math.max(least, longest));
    expect(least <= most && least <= MOST_REPETITIONS, path, `"min${what}" cannot be reached`);
    return { least, most };
}

/** All required members, then any of the optional ones, each in its order. */
function members(required, optional) {
    const comma = literal(", ");
    const further = (names) => names.map((name) => `(${comma} ${name})?`);
    if (required.length > 0) {
        return [literal("{"), required.join(` ${comma} `), ...further(optional), literal("}")].join(
            " ",
        );
    }
    // No comma stands before the first member, whichever of them that is.
    const begun = optional.map((first, index) =>
        [first, ...further(optional.slice(index + 1))].join(" "),
    );
    return begun.length === 0
        ? literal("{}")
        : `${literal("{")} (${begun.join(" | ")})? ${literal("}")}`;
}

function either(alternatives, path) {
    expect(alternatives.length > 0, path, "allows nothing");
    return alternatives.length === 1 ? alternatives[0] : `(${alternatives.join(" | ")})`;
}

function likelyTypes(schema) {
    const ofKeyword = [...KEYWORDS].find(([, keywords]) =>
        keywords.some((keyword) => keyword in schema),
    );
    return ofKeyword?.[0] ?? ["string", "integer", "boolean", "null"];
}

function isType(value, type) {
    if (type === "null") return value === null;
    if (type === "array") return Array.isArray(value);
    if (type === "integer") return Number.isInteger(value);
    if (type === "object")
        return typeof value === "object" && value !== null && !Array.isArray(value);
    return typeof value === type;
}

function onlyKeywords(schema, known, path) {
    const other = Object.keys(schema).find(
        (key) => !known.includes(key) && !ANNOTATIONS.includes(key),
    );
    expect(other === undefined, path, `"${other}" is not supported there by this server`);
}

function expect(condition, path, problem) {
    if (!condition) throw new Unsupported(`at ${path || "its root"}: ${problem}`);
}

/** A text as it stands in a grammar. */
export function literal(characters) {
    return JSON.stringify(characters);
}
