// What the model reads: the conversation in ChatML, and as little about tools as the choice allows.
//
// It is a very small model. Results stand in the system text, because between the turns they make it
// forget what the user said; and one that must make one certain call is asked for nothing else.

const DEFAULT_SYSTEM = "You are a helpful assistant.";

/** Of a result, where all that matters are the arguments of one more call; in characters. */
const RESULT_FOR_ARGUMENTS = 400;

/** How a call is written, up to its arguments. */
export const CALL = "<tool_call>";
export const callHead = (name) => `${CALL}{"name": "${name}", "arguments": `;

/** The one tool that must be called, if there is just one. */
export function certainTool({ kind, tools }) {
    return kind === "required" && tools.length === 1 ? tools[0] : undefined;
}

/** The turns of the conversation as `{ role, text }`. */
export function buildTurns({ messages, choice }) {
    const spoken = messages.filter(
        ({ role, text }) => (role === "user" || role === "assistant") && text !== "",
    );
    const tool = certainTool(choice);
    if (tool !== undefined) {
        const system = [...results(messages, RESULT_FOR_ARGUMENTS), "You write JSON."];
        return [turn("system", system), ...spoken, turn("user", [questionFor(tool)])];
    }
    const said = messages.filter(({ role }) => role === "system").map(({ text }) => text);
    const system = [
        said.join("\n") || DEFAULT_SYSTEM,
        ...results(messages, Infinity),
        toolList(choice),
    ];
    return [turn("system", system), ...spoken];
}

function turn(role, paragraphs) {
    return { role, text: paragraphs.filter((text) => text !== "").join("\n\n") };
}

function results(messages, longest) {
    const found = messages.filter(({ role }) => role === "tool");
    return found.map(({ call, text }) => `${call} returned:\n${text.slice(0, longest)}`);
}

/** Names in place of the schema, which a grammar holds anyway: it would only copy from it. */
function questionFor({ name, description, schema }) {
    const asked = Object.keys(schema.properties ?? {}).join(", ");
    return `${name}: ${description}\nWhich ${asked || "arguments"}?`;
}

function toolList({ kind, tools }) {
    if (kind === "none") return "";
    const end =
        kind === "required" ? "Call the one that helps most." : "Call one only if you need it.";
    const call = `A call is written ${callHead("NAME")}{…}}. ${end}`;
    return ["You can call these tools:", ...tools.map(signature), call].join("\n");
}

/** `- list_charges(order_id): All charges of an order.` */
function signature({ name, description, schema }) {
    return `- ${name}(${Object.keys(schema.properties ?? {}).join(", ")}): ${description}`;
}
