//! Files in memory that misbehave on command.
