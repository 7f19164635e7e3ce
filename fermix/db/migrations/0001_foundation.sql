-- Conversations, the inbox, turns and the outbox. Ids are ULIDs, times integer milliseconds UTC.

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread TEXT NOT NULL,
    title TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    archived_ms INTEGER,
    UNIQUE (channel, chat_id, thread)
) STRICT;

CREATE INDEX conversations_updated ON conversations (updated_ms);

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    body TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (conversation_id, position)
) STRICT;

CREATE INDEX messages_turn ON messages (turn_id);

CREATE TABLE inbox (
    id TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    platform_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    trust INTEGER NOT NULL,
    attended INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('received', 'running', 'delivered', 'committed', 'failed', 'dropped')),
    attempts INTEGER NOT NULL,
    turn_id TEXT NOT NULL UNIQUE,
    received_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    error TEXT,
    UNIQUE (channel, platform_id)
) STRICT;

CREATE INDEX inbox_state ON inbox (state);

CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    inbox_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('running', 'completed', 'failed', 'cancelled', 'interrupted')),
    attempt INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost_micro_usd INTEGER,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    error TEXT
) STRICT;

CREATE INDEX turns_inbox ON turns (inbox_id);
CREATE INDEX turns_conversation ON turns (conversation_id);

CREATE TABLE outbox (
    id TEXT NOT NULL PRIMARY KEY,
    turn_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'uncertain')),
    attempts INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    UNIQUE (turn_id, position)
) STRICT;

CREATE INDEX outbox_state ON outbox (state);
