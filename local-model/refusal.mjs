/** A request that is not served, in the form in which OpenAI says so. */
export class Refusal extends Error {
    constructor(status, message, { param = null, code = null } = {}) {
        super(message);
        this.status = status;
        this.param = param;
        this.code = code;
    }

    toJSON() {
        const type = this.status < 500 ? "invalid_request_error" : "server_error";
        return { error: { message: this.message, type, param: this.param, code: this.code } };
    }
}

/** What is wrong with one field of the request's body. */
export function badRequest(param, problem, code = null) {
    return new Refusal(400, `${param}: ${problem}`, { param, code });
}
