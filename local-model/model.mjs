// The model, in this process: texts to tokens, and tokens to texts.

import { availableParallelism } from "node:os";
import { getLlama, LlamaGrammarEvaluationState } from "node-llama-cpp";

const CONTEXT_TOKENS = 8192;

/**
 * A prompt is read in blocks of this many tokens, and only whole blocks of the prompt before it are
 * used again. So each token is always computed in the same company and rounded in the same way, and
 * the answer is the same whatever was asked before.
 */
const BLOCK = 128;

/** What a small model said it says again; free text is kept from that, JSON must repeat itself. */
const REPETITION = { penalty: 1.15, lastTokens: 64 };

/** Stands at the end of a text whose last character has not all its bytes yet. */
const INCOMPLETE = "\uFFFD";

export class LocalModel {
    #llama;
    #model;
    #sequence;
    #read = [];
    #last = Promise.resolve();

    static async load(weights) {
        // With as many threads as processors, one busy processor makes all of them wait.
        const threads = Math.max(1, Math.floor(availableParallelism() / 2));
        // The installed library runs or none does: nothing is built, nothing is fetched.
        const llama = await getLlama({
            gpu: false,
            build: "never",
            skipDownload: true,
            progressLogs: false,
            logLevel: "error",
            maxThreads: threads,
        });
        const model = await llama.loadModel({ modelPath: weights });
        const context = await model.createContext({ contextSize: CONTEXT_TOKENS, threads });
        return new LocalModel(llama, model, context.getSequence());
    }

    constructor(llama, model, sequence) {
        this.#llama = llama;
        this.#model = model;
        this.#sequence = sequence;
    }

    get contextTokens() {
        return CONTEXT_TOKENS;
    }

    /** The tokens of a conversation, `{ role, text }` each, up to where the model answers. */
    tokens(turns) {
        const [start, end] = ["<|im_start|>", "<|im_end|>"].map((mark) =>
            this.#model.tokenize(mark, true),
        );
        // In a text the letters of these marks stay letters.
        const letters = (text) => this.#model.tokenize(text, false);
        const written = turns.flatMap(({ role, text }) => [
            ...start,
            ...letters(`${role}\n${text}`),
            ...end,
            ...letters("\n"),
        ]);
        return [...written, ...start, ...letters("assistant\n")];
    }

    /** A grammar in GBNF, for `generate`. */
    grammar(text) {
        return this.#llama.createGrammar({ grammar: text });
    }

    /**
     * Goes on after `prompt` with the most likely token each time, and hands each piece of text to
     * `onText`. One answer at a time; others wait. Once `signal` is aborted, its reason is thrown.
     */
    generate(options) {
        const answer = this.#last.then(() => this.#generate(options));
        this.#last = answer.catch(() => {});
        return answer;
    }

    async #generate({ prompt, grammar, mayRepeat, maxTokens, signal, onText }) {
        signal.throwIfAborted();
        const cached = await this.#readBlocks(prompt, signal);
        const most = Math.min(maxTokens, CONTEXT_TOKENS - prompt.length);
        const generated = [];
        let pending = [];
        const sampling = this.#sampling(grammar, mayRepeat, generated);
        for await (const token of this.#sequence.evaluate(
            prompt.slice(this.#read.length),
            sampling,
        )) {
            signal.throwIfAborted();
            if (this.#model.isEogToken(token))
                return { cached, generated: generated.length, ended: true };
            generated.push(token);
            pending.push(token);
            const text = this.#model.detokenize(pending);
            const isLast = generated.length >= most;
            if (isLast || !text.endsWith(INCOMPLETE)) {
                onText(text);
                pending = [];
            }
            if (isLast) break;
        }
        return { cached, generated: generated.length, ended: false };
    }

    #sampling(grammar, mayRepeat, generated) {
        const { penalty, lastTokens } = REPETITION;
        return {
            temperature: 0,
            yieldEogToken: true,
            ...(grammar && {
                grammarEvaluationState: new LlamaGrammarEvaluationState({
                    model: this.#model,
                    grammar,
                }),
            }),
            ...(!mayRepeat && {
                repeatPenalty: { penalty, punishTokens: () => generated.slice(-lastTokens) },
            }),
        };
    }

    /** Reads the prompt's whole blocks; how many tokens of it had been read before. */
    async #readBlocks(prompt, signal) {
        // The next token is made from the last one that is read now, so one must be left.
        const whole = wholeBlocks(prompt.length - 1);
        const different = this.#read.findIndex((token, index) => token !== prompt[index]);
        const same = wholeBlocks(different === -1 ? this.#read.length : different);
        const cached = Math.min(same, whole);
        this.#read = prompt.slice(0, cached);
        await this.#sequence.adaptStateToTokens(this.#read, false);
        while (this.#read.length < whole) {
            signal.throwIfAborted();
            const block = prompt.slice(this.#read.length, this.#read.length + BLOCK);
            await this.#sequence.evaluateWithoutGeneratingNewTokens(block);
            this.#read.push(...block);
        }
        return cached;
    }
}

function wholeBlocks(tokens) {
    return Math.floor(tokens / BLOCK) * BLOCK;
}
