"""The adapters of Postgres: pool, statements, stores, migrations."""
