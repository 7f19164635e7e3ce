-- What the phases of a turn decided, a JSON list of lines in their order.
ALTER TABLE turns ADD COLUMN decisions TEXT NOT NULL DEFAULT '[]';
