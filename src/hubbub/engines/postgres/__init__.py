"""Tables in Postgres, asked where they are."""
