"""What a run leaves behind: frozen structs, schema version, store, verdict."""
