-- What each call to a model took and cost. No words are in it: it outlives the conversation.

CREATE TABLE model_calls (
    id TEXT NOT NULL PRIMARY KEY,
    turn_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    purpose TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    outcome TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    written_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    is_estimated INTEGER NOT NULL,
    cost_micro_usd INTEGER,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX model_calls_turn ON model_calls (turn_id);
CREATE INDEX model_calls_conversation ON model_calls (conversation_id, ended_ms);
CREATE INDEX model_calls_ended ON model_calls (ended_ms);
