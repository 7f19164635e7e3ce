-- What stands in a request instead of older messages, and the whole of long tool results.

CREATE TABLE summaries (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    upto_position INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX summaries_conversation ON summaries (conversation_id, upto_position);

CREATE TABLE tool_results (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    body BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX tool_results_owner ON tool_results (owner);
