"""The note that our requests contain in place of an answer that is missing."""

NO_ANSWER = "[note of the tool layer: there is no answer here]"


def alternating(messages):
    """The messages, with a note wherever two of the user would follow each other, calls aside."""
    is_user_last = False
    for at, message in enumerate(messages):
        following = messages[at + 1] if at + 1 < len(messages) else {}
        has_calls = bool(message.get("calls")) or following.get("role") == "tool"
        if message["role"] == "user":
            if is_user_last:
                yield {"role": "assistant", "text": NO_ANSWER, "calls": []}
            is_user_last = True
        elif message["role"] == "assistant" and not has_calls:
            is_user_last = False
            if not message.get("heard") and not message["text"].strip():
                message = {**message, "text": NO_ANSWER}
        yield message
