-- When the run was found open in a backup that was put back; NULL: never. What
-- was last tried before is asked about before it is sent.
ALTER TABLE run ADD COLUMN restored_at INTEGER;
