// The form of an answer: what the model may write, and what that says in the API's terms.

import { Grammar, literal, Unsupported } from "./grammar.mjs";
import { CALL, callHead, certainTool } from "./prompt.mjs";
import { badRequest } from "./refusal.mjs";

const WRITTEN_HEAD = new RegExp(`^${CALL}\\{"name": "([^"]+)", "arguments": `);

/**
 * The grammar of what the model writes, or undefined where it may write anything. Required calls fit
 * their schemas. With `auto` a call does too, unless no grammar can hold its schema: then only the
 * names of the arguments are sure.
 */
export function answerGrammar(choice) {
    if (choice.kind === "none") return undefined;
    const grammar = new Grammar();
    const certain = certainTool(choice);
    if (certain !== undefined) return grammar.text(strictRule(grammar, certain));
    const rule = choice.kind === "required" ? strictRule : looseRule;
    const calls = choice.tools.map(
        (tool) => `${literal(callHead(tool.name))} ${rule(grammar, tool)}`,
    );
    const text = choice.kind === "required" ? [] : ["[^<] [^\\x00]*"];
    return grammar.text([...calls, ...text].join(" | "));
}

function strictRule(grammar, { schema, at }) {
    try {
        return grammar.add(schema);
    } catch (error) {
        if (!(error instanceof Unsupported)) throw error;
        throw badRequest(at, `${error.message}; leave the tool out, or let tool_choice be "auto"`);
    }
}

function looseRule(grammar, { schema }) {
    try {
        return grammar.add(schema);
    } catch (error) {
        if (!(error instanceof Unsupported)) throw error;
        const names = Object.keys(schema.properties ?? {});
        return grammar.add({
            type: "object",
            properties: Object.fromEntries(names.map((name) => [name, true])),
        });
    }
}

/** Takes an answer apart as it comes: text, or a call's name and then its arguments. */
export class AnswerReader {
    #state = "start";
    #begun = "";
    #on;

    /** `on` has `text(piece)`, `call(name)` and `argumentsText(piece)`. */
    constructor(choice, on) {
        this.#on = on;
        const certain = certainTool(choice);
        if (choice.kind === "none") this.#state = "text";
        if (certain !== undefined) this.#call(certain.name);
    }

    get isCall() {
        return this.#state === "arguments";
    }

    add(piece) {
        if (this.#state === "arguments") return this.#on.argumentsText(piece);
        if (this.#state === "text") return this.#on.text(piece);
        this.#begun += piece;
        // The grammar sees to it that what begins like a call is one.
        if (!this.#begun.startsWith("<")) return this.#text(this.#begun);
        const head = WRITTEN_HEAD.exec(this.#begun);
        if (head === null) return undefined;
        this.#call(head[1]);
        const rest = this.#begun.slice(head[0].length);
        return rest === "" ? undefined : this.add(rest);
    }

    #call(name) {
        this.#state = "arguments";
        this.#on.call(name);
    }

    #text(piece) {
        this.#state = "text";
        this.#on.text(piece);
    }
}
